package window_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

func TestSignalArrivesBehindItsData(t *testing.T) { testjob.All(t, 1, signalBehindData) }

// signalBehindData puts data and a signal, and compares the data behind it.
func signalBehindData(ctx context.Context, r *testjob.Rank) {
	const n = 300
	w := allocate[int32](ctx, r, n)
	src := make([]int32, n)
	for round := 1; round <= 20; round++ {
		for i := range src {
			src[i] = int32(round*1000 + i)
		}
		signal := window.Signal{Slot: 1, Value: uint64(round)}
		if round%2 == 0 {
			r.NoError(started(ctx)(w.StartPutNotify(ctx, r.Right(), 0, src, signal)))
		} else {
			r.NoError(w.PutNotify(ctx, r.Right(), 0, src, signal))
		}
		clear(src) // local completion
		slot, value, err := w.WaitNotify(ctx, window.Until{Slots: []int{1}, Value: uint64(round)})
		r.NoError(err)
		r.Equal(1, slot)
		r.EqualValues(round, value)
		for i, v := range w.Local() {
			r.EqualValues(round*1000+i, v)
		}
		r.NoError(r.World.Barrier(ctx))
	}
}

func TestSignalsThatAddSumInTheirSlot(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[byte](ctx, r, r.N*10)
		for i := range 10 {
			for to := range r.N {
				r.NoError(w.PutNotify(ctx, to, r.Me*10+i, []byte{1}, window.Signal{Slot: 63, Add: true, Value: 1 << 40}))
			}
		}
		all := uint64(r.N*10) << 40
		_, value, err := w.WaitNotify(ctx, window.Until{Slots: []int{63}, Condition: window.AtLeast, Value: all})
		r.NoError(err)
		r.Equal(all, value)
		for _, b := range w.Local() {
			r.EqualValues(1, b)
		}
		old, err := w.ResetNotify(63, 5)
		r.NoError(err)
		r.Equal(all, old)
		_, value, ok, err := w.TestNotify(window.Until{Slots: []int{63}, Value: 5})
		r.NoError(err)
		r.True(ok)
		r.EqualValues(5, value)
	})
}

func TestPutNotifyWithoutDataSetsItsSignal(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1)
		r.NoError(w.PutNotify(ctx, r.Right(), 0, nil, window.Signal{Value: math.MaxUint64}))
		_, value, err := w.WaitNotify(ctx, window.Until{Slots: []int{0}, Condition: window.NotEqual})
		r.NoError(err)
		r.EqualValues(uint64(math.MaxUint64), value)
		r.NoError(w.Fence(ctx))
		r.NoError(w.PutNotify(ctx, r.Right(), 1, nil, window.Signal{Add: true, Value: 3}))
		_, value, err = w.WaitNotify(ctx, window.Until{Slots: []int{0}, Condition: window.NotEqual, Value: math.MaxUint64})
		r.NoError(err)
		r.EqualValues(2, value, "sums wrap around")
		r.Zero(w.Local()[0])
	})
}

func TestWaitNotifyWaitsForAnyAndForAllSlots(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		const slots = 1000
		w := allocate[byte](ctx, r, 1, window.WithSlots(slots))
		list := make([]int, slots)
		for i := range list {
			list[i] = i
		}
		last := slots - 1 - r.Me
		r.NoError(w.PutNotify(ctx, r.Right(), 0, nil, window.Signal{Slot: last, Value: 9}))
		slot, value, err := w.WaitNotify(ctx, window.Until{Slots: list, Value: 9})
		r.NoError(err)
		r.Equal(slots-1-r.Left(), slot)
		r.EqualValues(9, value)
		_, _, ok, err := w.TestNotify(window.Until{Slots: list, Value: 9, All: true})
		r.NoError(err)
		r.False(ok, "one of them is not all")
		r.NoError(r.World.Barrier(ctx), "all have seen the first signal")
		for i := range slots {
			r.NoError(w.PutNotify(ctx, r.Right(), 0, nil, window.Signal{Slot: i, Value: uint64(100 + i)}))
		}
		slot, value, err = w.WaitNotify(ctx, window.Until{Slots: list, Condition: window.AtLeast, Value: 100, All: true})
		r.NoError(err)
		r.Equal(slots-1, slot)
		r.EqualValues(100+slots-1, value)
		r.NoError(w.Fence(ctx))
	})
}

func TestWaitNotifyComparesEachSlotWithItsOwnValue(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[byte](ctx, r, 1)
		changed := window.Until{Slots: []int{4, 5, 6}, Values: []uint64{0, 0, 0}, Condition: window.NotEqual}
		for _, slot := range []int{6, 4, 5, 4} {
			next := changed.Values[slot-4] + uint64(slot)
			r.NoError(w.PutNotify(ctx, r.Right(), 0, nil, window.Signal{Slot: slot, Value: next}))
			at, value, err := w.WaitNotify(ctx, changed)
			r.NoError(err)
			r.Equal(slot, at)
			r.Equal(next, value)
			changed.Values[slot-4] = value
			r.NoError(r.World.Barrier(ctx), "no neighbor is a signal ahead")
		}
		_, _, ok, err := w.TestNotify(changed)
		r.NoError(err)
		r.False(ok)
		_, _, ok, err = w.TestNotify(window.Until{Slots: changed.Slots, Values: []uint64{8, 5, 6}, All: true})
		r.NoError(err)
		r.True(ok)
		_, _, _, err = w.TestNotify(window.Until{Slots: changed.Slots, Values: []uint64{8}})
		r.ErrorIs(err, window.ErrRange)
		r.NoError(w.Fence(ctx))
	})
}

func TestSignalWakesTheGoroutineThatWaitsForItsSlot(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		const n = 16
		w := allocate[int64](ctx, r, n)
		done := make(chan error, n)
		for i := range n {
			go func() {
				_, v, err := w.WaitNotify(ctx, window.Until{Slots: []int{i}, Condition: window.NotEqual})
				if err == nil && v != uint64(i+1) {
					err = errors.New("another slot's value")
				}
				done <- err
			}()
		}
		for i := n - 1; i >= 0; i-- {
			r.NoError(w.PutNotify(ctx, r.Right(), i, []int64{int64(i)}, window.Signal{Slot: i, Value: uint64(i + 1)}))
		}
		for range n {
			r.NoError(<-done)
		}
	})
}

func TestCanceledWaitNotifyReturnsItsCauseAndLosesNoSignal(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1)
		cause := errors.New("late")
		over, cancel := context.WithCancelCause(ctx)
		waiting := make(chan error)
		go func() {
			_, _, err := w.WaitNotify(over, window.Until{Slots: []int{2}, Value: 1})
			waiting <- err
		}()
		cancel(cause)
		err := <-waiting
		r.ErrorIs(err, cause)
		var op *window.OpError
		r.ErrorAs(err, &op)
		r.Equal("WaitNotify", op.Op)
		r.NoError(w.Fence(ctx)) // a neighbor that is ahead would have met the canceled wait
		r.NoError(w.PutNotify(ctx, r.Right(), 0, nil, window.Signal{Slot: 2, Value: 1}))
		_, _, err = w.WaitNotify(ctx, window.Until{Slots: []int{2}, Value: 1})
		r.NoError(err)
	})
}

func TestWaitNotifyReturnsAtOnceIfTheConditionHolds(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1)
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, value, err := w.WaitNotify(over, window.Until{Slots: []int{0}})
		r.NoError(err)
		r.Zero(value)
		_, _, err = w.WaitNotify(over, window.Until{Slots: []int{0}, Condition: window.AtLeast})
		r.NoError(err)
	})
}

func TestSignedWaitNotifyComparesSlotsBelowZero(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1)
		minus := int64(-3)
		r.NoError(w.PutNotify(ctx, r.Right(), 0, nil, window.Signal{Slot: 1, Add: true, Value: uint64(minus)}))
		slot, value, err := w.WaitNotify(ctx, window.Until{Slots: []int{0, 1}, Condition: window.Less, Signed: true})
		r.NoError(err)
		r.Equal(1, slot)
		r.Equal(minus, int64(value))
		negative := window.Until{Slots: []int{1}, Condition: window.AtLeast, Value: 1, Signed: true}
		_, _, ok, err := w.TestNotify(negative)
		r.NoError(err)
		r.False(ok)
		negative.Values = []uint64{uint64(minus)}
		_, _, ok, err = w.TestNotify(negative)
		r.NoError(err)
		r.True(ok)
		_, _, ok, err = w.TestNotify(window.Until{Slots: []int{1}, Condition: window.AtLeast, Value: 1})
		r.NoError(err)
		r.True(ok, "as uint64")
		r.NoError(w.Fence(ctx))
	})
}
