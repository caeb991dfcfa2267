package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// lengthOf returns the number of elements at a rank in these tests: none at some.
func lengthOf(rank int) int { return rank * 37 % 100 }

func TestAllocateVGivesEachRankItsOwnLength(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		before := used(r.World)
		w, err := window.AllocateV[int64](ctx, r.World, lengthOf(r.Me))
		r.NoError(err)
		r.Len(w.Local(), lengthOf(r.Me))
		for to := range r.N {
			n := lengthOf(to)
			r.Equal(n, w.Len(to))
			if shared, err := w.Shared(ctx, to); err == nil {
				r.Len(shared, n)
			}
			r.ErrorIs(w.PutValue(ctx, to, n, 1), window.ErrRange)
			r.ErrorIs(w.Put(ctx, to, 0, make([]int64, n+1)), window.ErrRange)
			_, err := window.FetchAdd(ctx, w, to, n, 1)
			r.ErrorIs(err, window.ErrRange)
			var op *window.OpError
			r.ErrorAs(err, &op)
			r.Equal(n, op.Limit)
		}
		for _, to := range []int{-1, r.N, window.Null} {
			r.Zero(w.Len(to))
		}
		r.NoError(w.Fence(ctx))
		r.Equal(make([]int64, lengthOf(r.Me)), w.Local(), "refused operations change nothing")
		r.NoError(r.World.Barrier(ctx), "all have looked")
		for to := range r.N {
			for i := r.Me; i < lengthOf(to); i += r.N {
				r.NoError(w.PutValue(ctx, to, i, int64(1000*to+i)))
			}
			r.NoError(w.PutNotify(ctx, to, 0, nil, window.Signal{Slot: 63, Add: true, Value: 1}))
		}
		r.NoError(w.Fence(ctx))
		for i, v := range w.Local() {
			r.EqualValues(1000*r.Me+i, v)
		}
		_, _, err = w.WaitNotify(ctx, window.Until{Slots: []int{63}, Value: uint64(r.N)})
		r.NoError(err)
		held, err := w.Lock(ctx, r.Right(), window.Exclusive)
		r.NoError(err)
		got := make([]int64, w.Len(r.Right()))
		r.NoError(w.Get(ctx, r.Right(), 0, got))
		for i, v := range got {
			r.EqualValues(1000*r.Right()+i, v)
		}
		r.NoError(held.Unlock(ctx))
		r.NoError(w.Free(ctx))
		r.Equal(before, used(r.World))
	})
}

func TestAllocateAndAllocateVReturnErrMismatchTogether(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		allocate := window.AllocateV[int32]
		if r.Me == r.N-1 {
			allocate = window.Allocate[int32]
		}
		_, err := allocate(ctx, r.World, 8)
		r.ErrorIs(err, runtime.ErrMismatch)
		_, err = window.AllocateV[int32](ctx, r.World, r.Me, window.WithSlots(1+r.Me/(r.N-1)))
		r.ErrorIs(err, runtime.ErrMismatch, "other arguments must agree")
		negative := 3
		if r.Me == 1 {
			negative = -3
		}
		_, err = window.AllocateV[int32](ctx, r.World, negative)
		r.ErrorIs(err, window.ErrRange)
	})
}

func TestOperationsOnNullDoNothing(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, elems)
		f := allocate[float64](ctx, r, 1)
		for range 2 {
			for _, list := range [][]access{ranged, single} {
				for _, a := range list {
					r.NoError(a.call(ctx, w, window.Null, 0, 1), a.op)
					r.NoError(a.call(ctx, w, window.Null, elems+7, 3), a.op)
				}
			}
			r.NoError(w.PutValue(ctx, r.Me, 0, 9)) // a value that has gone through scratch memory
			v, err := w.GetValue(ctx, window.Null, 0)
			r.NoError(err)
			r.Zero(v)
			dst := []int64{5}
			r.NoError(w.Get(ctx, window.Null, 0, dst))
			r.Equal([]int64{5}, dst)
			sum, err := window.FetchAdd(ctx, f, window.Null, 0, 1.5)
			r.NoError(err)
			r.Zero(sum)
			r.NoError(w.Flush(ctx, window.Null))
			r.NoError(w.Order(window.Null))
			r.NoError(w.PutValue(ctx, r.Me, 0, 0))
		}
		_, err := w.Lock(ctx, window.Null, window.Shared)
		r.ErrorIs(err, window.ErrRange)
		r.NoError(w.Fence(ctx))
		r.Equal(make([]int64, elems), w.Local())
		r.Same(r.World, w.Team())
		r.NoError(w.Free(ctx))
		r.ErrorIs(w.PutValue(ctx, window.Null, 0, 1), window.ErrFreed)
	})
}
