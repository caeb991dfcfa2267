package litmus

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

func TestMessagePassing(t *testing.T) { everywhere(t, "message passing") }

// messagePassing: rank 0 puts data with a signal, rank 1 sees the signal and
// reads. Forbidden: the signal of a round with data of the round before.
func messagePassing(ctx context.Context, r *testjob.Rank) {
	for _, add := range []bool{false, true} {
		for _, n := range []int{1, 64, 4 << 10, 32 << 10} {
			w := allocate[uint64](ctx, r, n)
			for round := 1; round <= rounds(60); round++ {
				if r.Me == 0 {
					send(ctx, r, w, n, round, add)
				} else {
					receive(ctx, r, w, round)
				}
			}
			r.NoError(w.Free(ctx))
		}
	}
}

const (
	dataSlot = iota
	doneSlot
)

func send(ctx context.Context, r *testjob.Rank, w *window.Window[uint64], n, round int, add bool) {
	src := make([]uint64, n)
	for i := range src {
		src[i] = uint64(round)
	}
	s := window.Signal{Slot: dataSlot, Value: uint64(round)}
	if add {
		s.Add, s.Value = true, 1
	}
	r.NoError(w.PutNotify(ctx, 1, 0, src, s))
	hear(ctx, r, w, doneSlot, round)
}

// receive loads the last element first: it arrives last.
func receive(ctx context.Context, r *testjob.Rank, w *window.Window[uint64], round int) {
	hear(ctx, r, w, dataSlot, round)
	mem := w.Local()
	for i := len(mem) - 1; i >= 0; i-- {
		if mem[i] != uint64(round) {
			r.FailNow("the flag came before its data", "round %d, element %d of %d is of round %d", round, i, len(mem), mem[i])
		}
	}
	tell(ctx, r, w, 0, doneSlot, round)
}

func TestFlagElsewhere(t *testing.T) {
	everywhere(t, "flag elsewhere")
	late(t, "flag elsewhere") // the signal to rank 2 overtakes the put, unless a flush stands between
}

// flagElsewhere: rank 0 puts at rank 1, flushes, and signals rank 2 through
// another window; rank 2 gets from rank 1. Forbidden: the value before the put.
func flagElsewhere(ctx context.Context, r *testjob.Rank) {
	data := allocate[uint64](ctx, r, 512)
	flag := allocate[uint64](ctx, r, 1)
	buf := make([]uint64, 512)
	for round := 1; round <= rounds(40); round++ {
		switch r.Me {
		case 0:
			for i := range buf {
				buf[i] = uint64(round)
			}
			r.NoError(data.Put(ctx, 1, 0, buf))
			r.NoError(data.PutValue(ctx, 1, 511, uint64(round)))
			r.NoError(data.Flush(ctx, 1))
			tell(ctx, r, flag, 2, 0, round)
			hear(ctx, r, flag, 0, round)
		case 2:
			hear(ctx, r, flag, 0, round)
			r.NoError(data.Get(ctx, 1, 0, buf))
			for i, v := range buf {
				if v < uint64(round) {
					r.FailNow("flushed and not there", "round %d, element %d is of round %d", round, i, v)
				}
			}
			tell(ctx, r, flag, 0, 0, round)
		}
	}
	r.NoError(data.Fence(ctx))
}

func TestElementAsFlag(t *testing.T) { everywhere(t, "element as flag") }

// elementAsFlag: rank 0 puts data, orders or flushes, and stores an element; rank 1 waits for
// the element and reads. Forbidden: the element of a round with data of the round before.
func elementAsFlag(ctx context.Context, r *testjob.Rank) {
	const n = 512
	data := allocate[uint64](ctx, r, n)
	flag := allocate[int32](ctx, r, 1)
	src := make([]uint64, n)
	for round := 1; round <= rounds(60); round++ {
		if r.Me == 1 {
			_, _, err := window.WaitUntil(ctx, flag, window.Elements[int32]{At: []int{0}, Condition: window.AtMost, Value: int32(-round)})
			r.NoError(err)
			for i := n - 1; i >= 0; i-- {
				if v := data.Local()[i]; v != uint64(round) {
					r.FailNow("the element came before the data", "round %d, element %d is of round %d", round, i, v)
				}
			}
			tell(ctx, r, data, 0, doneSlot, round)
			continue
		}
		for i := range src {
			src[i] = uint64(round)
		}
		r.NoError(data.Put(ctx, 1, 0, src))
		if round%2 == 0 {
			r.NoError(data.Order(1))
		} else {
			r.NoError(data.Flush(ctx, 1))
		}
		r.NoError(window.AtomicStore(ctx, flag, 1, 0, int32(-round)))
		r.NoError(flag.Flush(ctx, 1))
		hear(ctx, r, data, doneSlot, round)
	}
	r.NoError(flag.Fence(ctx))
}

func TestSignalBehindEarlierPuts(t *testing.T) { everywhere(t, "signal behind puts") }

// signalBehindPuts: rank 0 puts through two windows, by calls that wait and calls that do not, and then
// signals, mostly without data. Rank 1 sees the signal and reads. Forbidden: data of the round before.
func signalBehindPuts(ctx context.Context, r *testjob.Rank) {
	sizes := []int{1, 3, 512, 9 << 10, 40 << 10}
	far, flags := allocate[uint64](ctx, r, 64<<10), allocate[uint64](ctx, r, 64)
	buf := make([]uint64, 40<<10)
	for round := 1; round <= rounds(40); round++ {
		slot := 1 + round%2 // a set slot, and one that adds
		n := sizes[round%len(sizes)]
		if r.Me == 1 {
			want := uint64(round)
			if slot == 1 {
				want = uint64(round / 2)
			}
			_, _, err := flags.WaitNotify(ctx, window.Until{Slots: []int{slot}, Condition: window.AtLeast, Value: want})
			r.NoError(err)
			for i, v := range far.Local()[:n+1] {
				if v != uint64(round) {
					r.FailNow("the signal went ahead", "round %d, element %d of %d is of round %d", round, i, n+1, v)
				}
			}
			r.EqualValues(round, flags.Local()[round%64])
			tell(ctx, r, flags, 0, 0, round)
			continue
		}
		for i := range buf[:n] {
			buf[i] = uint64(round)
		}
		request, err := far.StartPut(ctx, 1, 0, buf[:n])
		r.NoError(err)
		r.NoError(flags.PutValue(ctx, 1, round%64, uint64(round)))
		r.NoError(far.Put(ctx, 1, n, buf[:1]))
		signal := window.Signal{Slot: slot, Value: uint64(round)}
		if slot == 1 {
			signal.Value, signal.Add = 1, true
		}
		var with []uint64
		if round%3 == 0 {
			with = buf[:1]
		}
		r.NoError(flags.PutNotify(ctx, 1, round%64, with, signal))
		r.NoError(request.Wait(ctx))
		hear(ctx, r, flags, 0, round)
	}
	r.NoError(flags.Fence(ctx))
}

func TestSignalInAWord(t *testing.T) { everywhere(t, "signal in a word") }

// signalInAWord: rank 0 puts data with a signal in an element of another window, rank 1 sees the
// element and reads. Forbidden: the element of a round with data of the round before.
func signalInAWord(ctx context.Context, r *testjob.Rank) {
	for _, add := range []bool{false, true} {
		for _, n := range []int{1, 64, 4 << 10, 32 << 10} {
			data, words := allocate[uint64](ctx, r, n), allocate[uint64](ctx, r, 2)
			buf := make([]uint64, n)
			for round := uint64(1); round <= uint64(rounds(60)); round++ {
				signal := window.SignalAt[uint64]{Window: words, Index: 1, Value: round}
				if add {
					signal.Value, signal.Add = 1, true
				}
				for i := range buf {
					buf[i] = round
				}
				if r.Me == 0 {
					r.NoError(window.PutSignal(ctx, data, 1, 0, buf, signal))
					_, _, err := window.WaitUntil(ctx, words, window.Elements[uint64]{At: []int{0}, Condition: window.AtLeast, Value: round})
					r.NoError(err)
					continue
				}
				_, _, err := window.WaitUntil(ctx, words, window.Elements[uint64]{At: []int{1}, Condition: window.AtLeast, Value: round})
				r.NoError(err)
				for i, v := range data.Local() {
					if v != round {
						r.FailNow("the element went ahead", "round %d, element %d is of round %d", round, i, v)
					}
				}
				signal.Index = 0
				r.NoError(window.PutSignal(ctx, data, 0, 0, nil, signal))
			}
			r.NoError(data.Free(ctx))
			r.NoError(words.Free(ctx))
		}
	}
}
