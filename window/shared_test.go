package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// oddLength returns the number of elements of a rank in these tests: none at some, and no
// whole pages or cache lines.
func oddLength(rank int) int { return rank * 7 % 5 * 3 }

func TestSharedArrayIsContiguousOverRanks(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) { shareArray(ctx, r, r.World) })
}

func TestSharedArrayOfEachHost(t *testing.T) {
	testjob.EachApart(t, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			host, err := r.World.SplitHost(ctx)
			r.NoError(err)
			shareArray(ctx, r, host)
			if host.Size() < r.N {
				_, err := window.AllocateShared[byte](ctx, r.World, 1)
				r.ErrorIs(err, window.ErrNotShared)
				r.ErrorContains(err, "Team.SplitHost")
			}
			r.NoError(host.Free(ctx))
		})
	})
}

func TestSharedArrayBetweenProcesses(t *testing.T) {
	if testwatch.Race {
		t.Skip("processes share no memory that the detector sees")
	}
	for _, j := range testjob.Processes(4) {
		t.Run(j.String(), func(t *testing.T) { j.Run(t, "shared array") })
	}
}

func shareWorld(ctx context.Context, r *testjob.Rank) { shareArray(ctx, r, r.World) }

// shareArray checks an array of all ranks of t, or the error where t cannot map one.
func shareArray(ctx context.Context, r *testjob.Rank, t *runtime.Team) {
	before := used(t)
	w, err := window.AllocateShared[int32](ctx, t, oddLength(t.Rank()), window.WithName("array"))
	if !team.Of(t).Mapped {
		r.ErrorIs(err, window.ErrNotShared)
		r.Nil(w)
		r.Equal(before, used(t), "the refusal holds no memory")
		return
	}
	r.NoError(err)
	whole, err := w.Whole()
	r.NoError(err)
	start := 0
	for to := range t.Size() {
		n := w.Len(to)
		r.Equal(oddLength(to), n)
		elems, err := w.Shared(ctx, to)
		r.NoError(err)
		r.Len(elems, n)
		if n > 0 {
			r.Same(&whole[start], &elems[0], "the elements of rank %d follow those of rank %d", to, to-1)
			if to == t.Rank() {
				r.Same(&elems[0], &w.Local()[0])
			}
		}
		start += n
	}
	r.Len(whole, start)
	for i := range w.Local() {
		w.Local()[i] = int32(100*t.Rank() + i)
	}
	r.NoError(w.Fence(ctx))
	start = 0
	for to := range t.Size() {
		for i := range w.Len(to) {
			r.EqualValues(100*to+i, whole[start])
			start++
		}
	}
	r.NoError(t.Barrier(ctx), "all have looked")
	useShared(ctx, r, w, t)
	r.NoError(w.Free(ctx))
	r.Equal(before, used(t))
	_, err = w.Whole()
	r.ErrorIs(err, window.ErrFreed)
}

// useShared makes operations on a window in one array: each rank signals the next.
func useShared(ctx context.Context, r *testjob.Rank, w *window.Window[int32], t *runtime.Team) {
	right, left := (t.Rank()+1)%t.Size(), (t.Rank()+t.Size()-1)%t.Size()
	signal := window.Signal{Slot: 3, Value: 1}
	if w.Len(right) > 0 {
		r.NoError(w.PutNotify(ctx, right, 1, []int32{int32(-t.Rank()), 8}, signal))
	} else {
		r.NoError(w.PutNotify(ctx, right, 0, nil, signal))
	}
	_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{3}, Value: 1})
	r.NoError(err)
	if w.Len(t.Rank()) > 0 {
		r.EqualValues(-left, w.Local()[1])
		r.EqualValues(8, w.Local()[2])
	}
	for to := range t.Size() {
		if w.Len(to) > 0 {
			_, err := window.FetchAdd(ctx, w, to, 0, 1)
			r.NoError(err)
		}
		r.ErrorIs(w.PutValue(ctx, to, w.Len(to), 1), window.ErrRange, "an index does not lead to the next rank")
		r.ErrorIs(w.PutValue(ctx, to, -1, 1), window.ErrRange)
	}
	if w.Len(t.Rank()) > 0 {
		sum := int32(100*t.Rank() + t.Size())
		index, _, err := window.WaitUntil(ctx, w, window.Elements[int32]{At: []int{0}, Value: sum})
		r.NoError(err)
		r.Zero(index)
		part := partAs[uint16](r, w, 4, 2)
		r.Len(part.Local(), 2)
		r.EqualValues(uint16(-left), part.Local()[0])
		_, err = part.Whole()
		r.ErrorIs(err, window.ErrPart)
	}
	held, err := w.Lock(ctx, right, window.Exclusive)
	r.NoError(err)
	r.NoError(held.Unlock(ctx))
	r.NoError(w.Fence(ctx))
}

func TestWholeOfAWindowInSeveralPiecesReturnsErrNotShared(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int32](ctx, r, 4)
		_, err := w.Whole()
		r.ErrorIs(err, window.ErrNotShared)
		r.ErrorContains(err, "AllocateShared")
		r.NoError(w.Free(ctx))
	})
}

func TestPartsOfASharedArrayNeedAlignmentAtEachRank(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 3}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		w, err := window.AllocateShared[byte](ctx, r.World, 12)
		r.NoError(err)
		_, err = window.Part[int64](w, 0, 1)
		r.ErrorIs(err, window.ErrAlignment, "rank 1 begins at byte 12")
		r.Len(partAs[int32](r, w, 4, 2).Local(), 2)
		r.NoError(w.Free(ctx))
	})
}

// The heap of rank 0 holds the array. All ranks get its error.
func TestAllocateSharedFailsAtAllRanksIfTheArrayDoesNotFit(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 4}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		before := used(r.World)
		_, err := window.AllocateShared[byte](ctx, r.World, 1<<20)
		r.ErrorIs(err, runtime.ErrExhausted)
		r.Equal(before, used(r.World))
		n := 8
		if r.Me == 2 {
			n = -1
		}
		_, err = window.AllocateShared[byte](ctx, r.World, n)
		r.ErrorIs(err, window.ErrRange)
		_, err = window.AllocateV[byte](ctx, r.World, 8)
		r.NoError(err, "the team goes on")
	}, runtime.WithHeap(3<<20))
}
