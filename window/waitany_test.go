package window_test

import (
	"context"
	"slices"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

func TestWaitAnyReturnsEachRequestOnce(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		const n = 50
		w, other := allocate[int64](ctx, r, n), allocate[int64](ctx, r, n)
		for i := range n {
			w.Local()[i], other.Local()[i] = int64(1000*r.Me+i), int64(-1000*r.Me-i)
		}
		r.NoError(r.World.Barrier(ctx))
		dst := make([]int64, 2*n)
		var requests []window.Request
		var at []int // the element of dst that a request fills
		for i := range n {
			for k, from := range []*window.Window[int64]{w, other} {
				at = append(at, 2*i+k)
				request, err := from.StartGet(ctx, r.Right(), i, dst[2*i+k:][:1])
				r.NoError(err)
				requests = append(requests, request)
			}
		}
		for len(requests) > 0 {
			i, err := window.WaitAny(ctx, requests)
			r.NoError(err)
			want := int64(1000*r.Right() + at[i]/2)
			if at[i]%2 == 1 {
				want = -want
			}
			r.Equal(want, dst[at[i]], "the request that WaitAny returned has filled its buffer")
			requests, at = slices.Delete(requests, i, i+1), slices.Delete(at, i, i+1)
		}
		i, err := window.WaitAny(ctx, nil)
		r.ErrorIs(err, window.ErrRange)
		r.Equal(-1, i)
		r.NoError(w.Fence(ctx))
	})
}

func TestWaitAnyLeavesRequestsWhenItsContextEnds(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[byte](ctx, r, large)
		w.Local()[large-1] = byte(r.Me)
		r.NoError(r.World.Barrier(ctx))
		over, cancel := context.WithCancel(ctx)
		cancel()
		dst := [2][]byte{make([]byte, large), make([]byte, large)}
		var requests []window.Request
		for _, buf := range dst {
			request, err := w.StartGet(ctx, r.Right(), 0, buf)
			r.NoError(err)
			requests = append(requests, request)
		}
		if i, err := window.WaitAny(over, requests); i < 0 {
			r.ErrorIs(err, context.Canceled)
		} else { // it was complete
			r.NoError(err)
			requests = slices.Delete(requests, i, i+1)
		}
		r.NoError(window.WaitAll(ctx, requests))
		for _, buf := range dst {
			r.Equal(byte(r.Right()), buf[large-1])
		}
		r.NoError(w.Fence(ctx))
	})
}
