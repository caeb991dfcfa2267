package window_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

func TestReallocKeepsElementsSlotsAndOptions(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		before := used(r.World)
		w := allocate[int64](ctx, r, 6, window.WithName("grown"), window.WithSlots(3))
		for i := range 6 {
			r.NoError(w.PutValue(ctx, r.Right(), i, int64(10*r.Me+i))) // Realloc completes them
		}
		r.NoError(w.PutNotify(ctx, r.Right(), 0, nil, window.Signal{Slot: 2, Value: 7}))
		old := w
		for _, n := range []int{2000, 4, 0, 5} {
			var err error
			w, err = w.Realloc(ctx, n)
			r.NoError(err)
			r.Len(w.Local(), n)
			r.Equal("grown", w.Name())
			_, value, err := w.WaitNotify(ctx, window.Until{Slots: []int{2}, Value: 7})
			r.NoError(err)
			r.EqualValues(7, value)
			_, err = w.ResetNotify(3, 0)
			r.ErrorIs(err, window.ErrRange)
			for i, v := range w.Local() {
				switch {
				case n == 5 || i >= 6:
					r.Zero(v, "new elements are zero")
				default:
					r.EqualValues(10*r.Left()+i, v)
				}
			}
		}
		r.ErrorIs(old.PutValue(ctx, r.Right(), 0, 1), window.ErrFreed)
		_, err := old.Realloc(ctx, 1)
		r.ErrorIs(err, window.ErrFreed)
		_, err = partAs[byte](r, w, 0, 1).Realloc(ctx, 1)
		r.ErrorIs(err, window.ErrPart)
		r.NoError(w.Free(ctx))
		r.Equal(before, used(r.World))
	})
}

func TestReallocThatFailsLeavesTheWindow(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[byte](ctx, r, 10)
		w.Local()[3] = 5
		_, err := w.Realloc(ctx, 8<<20)
		r.ErrorIs(err, runtime.ErrExhausted)
		_, err = w.Realloc(ctx, 10+r.Me)
		r.ErrorIs(err, runtime.ErrMismatch)
		v, err := w.GetValue(ctx, r.Right(), 3)
		r.NoError(err)
		r.EqualValues(5, v)
		r.NoError(w.Free(ctx))
	}, runtime.WithHeap(4<<20))
}

func TestReallocOfLengthsByRankAndOfASharedArray(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w, err := window.AllocateV[int32](ctx, r.World, r.Me+1)
		r.NoError(err)
		w.Local()[r.Me] = 3
		w, err = w.Realloc(ctx, r.Me+2)
		r.NoError(err)
		r.Equal(r.Right()+2, w.Len(r.Right()))
		r.Equal([]int32{3, 0}, w.Local()[r.Me:])
		r.NoError(w.Free(ctx))
		if !team.Of(r.World).Mapped {
			return
		}
		w, err = window.AllocateShared[int32](ctx, r.World, 2)
		r.NoError(err)
		w.Local()[1] = int32(r.Me)
		w, err = w.Realloc(ctx, 3)
		r.NoError(err)
		whole, err := w.Whole()
		r.NoError(err)
		for to := range r.N {
			r.Equal([]int32{0, int32(to), 0}, whole[3*to:3*to+3])
		}
		r.NoError(w.Free(ctx))
	})
}

func TestWithAlignmentHoldsWhereverElementsAreMapped(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		for align := 1; align <= 4096; align *= 4 {
			w := allocate[byte](ctx, r, 100, window.WithAlignment(align))
			elems := [][]byte{w.Local()}
			for to := range r.N {
				if shared, err := w.Shared(ctx, to); err == nil {
					elems = append(elems, shared)
				}
			}
			for _, e := range elems {
				r.Zero(reflect.ValueOf(e).Pointer() % uintptr(align))
			}
			r.NoError(w.PutValue(ctx, r.Right(), 99, 1))
			r.NoError(w.Fence(ctx))
			r.EqualValues(1, w.Local()[99])
			r.NoError(w.Free(ctx))
		}
		for _, align := range []int{-8, 0, 3, 8192} {
			_, err := window.Allocate[byte](ctx, r.World, 1, window.WithAlignment(align))
			r.ErrorIs(err, window.ErrAlignment)
		}
		if r.N > 1 {
			_, err := window.Allocate[byte](ctx, r.World, 1, window.WithAlignment(64<<(r.Me%2)))
			r.ErrorIs(err, runtime.ErrMismatch)
			r.ErrorContains(err, "aligned to 128")
		}
	})
}

// The words of attachments stay behind: else the first attachment to the new window would count as
// detached.
func TestReallocEndsAttachmentsAndTakesNewOnes(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 3, window.WithAttachments(2))
		heads := allocate[window.Pointer[int64]](ctx, r, 1)
		stale, _, err := w.Attach(ctx, 5)
		r.NoError(err)
		next, err := w.Realloc(ctx, 4)
		r.NoError(err)
		_, err = next.Open(ctx, stale)
		r.ErrorIs(err, window.ErrPointer)
		p, mine, err := next.Attach(ctx, 5)
		r.NoError(err)
		r.NoError(heads.PutValue(ctx, r.Right(), 0, p))
		r.NoError(heads.Fence(ctx))
		a, err := next.Open(ctx, heads.Local()[0])
		r.NoError(err)
		r.NoError(a.PutValue(ctx, a.Target, 2, int64(7+r.Me)))
		r.NoError(a.Close(ctx))
		r.NoError(next.Fence(ctx))
		r.EqualValues(7+r.Right(), mine[2])
		r.NoError(heads.Free(ctx))
		r.NoError(next.Free(ctx))
	})
}
