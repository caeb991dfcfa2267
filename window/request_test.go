package window_test

import (
	"bytes"
	"context"
	"errors"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/window"
)

const large = 1 << 20 // beyond every switch point

func TestMoreRequestsThanTheQueueHoldsComplete(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		const n = 600 // more than a queue holds
		w := allocate[int32](ctx, r, n)
		src, dst := make([]int32, n), make([]int32, n)
		requests := make([]window.Request, n)
		for i := range n {
			src[i] = int32(i*r.N + r.Me)
			var err error
			requests[i], err = w.StartPut(ctx, r.Right(), i, src[i:i+1])
			r.NoError(err)
		}
		for i := range n {
			r.NoError(requests[n-1-i].Wait(ctx), "in any order")
		}
		r.NoError(w.Fence(ctx))
		for i := range n {
			var err error
			requests[i], err = w.StartGet(ctx, r.Me, i, dst[i:i+1])
			r.NoError(err)
		}
		for i := range n {
			r.NoError(requests[i].Wait(ctx))
			r.Equal(int32(i*r.N+r.Left()), dst[i])
		}
	})
}

func TestWaitOfADoneRequestIgnoresItsContext(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[byte](ctx, r, large)
		over, cancel := context.WithCancel(ctx)
		cancel()
		req, err := w.StartGet(ctx, r.Right(), 0, make([]byte, large))
		r.NoError(err)
		for !req.Done() {
			goruntime.Gosched()
		}
		r.NoError(req.Wait(over))
	})
}

func TestSecondWaitOfAQueuedRequestReturnsErrEnded(t *testing.T) {
	testjob.Each(t, 1, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[byte](ctx, r, large)
			req, err := w.StartGet(ctx, r.Right(), 0, make([]byte, large))
			r.NoError(err)
			r.NoError(req.Wait(ctx))
			r.True(req.Done())
			again := req.Wait(ctx)
			mapped := c.Mapped() || !c.Queued && c.Atomics == "" && r.N == 1
			if !mapped {
				r.ErrorIs(again, window.ErrEnded)
			} else {
				r.NoError(again, "complete from the start")
			}
			r.NoError(window.Request{}.Wait(ctx))
			r.True(window.Request{}.Done())
		})
	})
}

func TestWaitedRequestDoesNotWaitForALaterTransfer(t *testing.T) {
	c := testjob.Config{Provider: "loop", Queued: true, Ranks: 2}
	c.Run(t, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[byte](ctx, r, large)
		dst := make([]byte, large)
		var old []window.Request
		for range 100 { // requests share what a queued transfer needs, one after the other
			req, err := w.StartGet(ctx, r.Right(), 0, dst)
			r.NoError(err)
			for _, o := range old {
				r.True(o.Done())
				r.ErrorIs(o.Wait(ctx), window.ErrEnded)
			}
			r.NoError(req.Wait(ctx))
			old = append(old, req)
		}
	})
}

func TestLongTransfersAreCompleteAtAnyAlignment(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		const most = 3<<19 + 17
		w := allocate[byte](ctx, r, most+16)
		src, dst := make([]byte, most), make([]byte, most)
		for i := range src {
			src[i] = byte(i*7>>3 + r.Me)
		}
		for _, n := range []int{16<<10 - 1, 16 << 10, 16<<10 + 1, 1 << 20, most} {
			for _, at := range []int{0, 1, 8} {
				clear(dst)
				r.NoError(w.Put(ctx, r.Right(), at, src[:n]))
				r.NoError(w.Flush(ctx, r.Right()))
				r.NoError(w.Get(ctx, r.Right(), at, dst[:n]))
				r.True(bytes.Equal(src[:n], dst[:n]), "%d bytes at %d", n, at)
				r.Equal(make([]byte, most-n), dst[n:])
			}
		}
	})
}

func TestCanceledGetGivesItsBufferBack(t *testing.T) {
	for _, c := range []testjob.Config{{Provider: "loop", Queued: true, Ranks: 2}, {Provider: "tcp", Ranks: 2}} {
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				w := allocate[byte](ctx, r, large)
				for i := range w.Local() {
					w.Local()[i] = 0xff
				}
				r.NoError(w.Fence(ctx))
				dst := make([]byte, large)
				req, err := w.StartGet(ctx, r.Right(), 0, dst)
				r.NoError(err)
				over, cancel := context.WithCancelCause(ctx)
				cancel(errors.New("changed my mind"))
				err = req.Wait(over)
				if err != nil {
					r.ErrorContains(err, "changed my mind")
					clear(dst)
				}
				r.NoError(w.Fence(ctx), "the window goes on")
				if err != nil {
					r.Equal(make([]byte, large), dst, "the transfer let go of the buffer")
				}
				r.NoError(w.Get(ctx, r.Right(), 0, dst))
				r.EqualValues(0xff, dst[large-1])
				r.NoError(w.Fence(ctx))
			}, disturbed(faulty.Plan{Seed: 7, DelayStarts: 1, DelayCompletions: 1, MaxDelay: 5 * time.Millisecond, MaxPolls: 1 << 20}))
		})
	}
}

func TestCanceledBlockingCallReturnsItsCause(t *testing.T) {
	c := testjob.Config{Provider: "loop", Queued: true, Ranks: 2}
	c.Run(t, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[byte](ctx, r, large)
		cause := errors.New("enough")
		over, cancel := context.WithCancelCause(ctx)
		cancel(cause)
		buf := make([]byte, large)
		canceled := 0
		for range 20 {
			for _, err := range []error{w.Put(over, r.Right(), 0, buf), w.Get(over, r.Right(), 0, buf), w.Flush(over, r.Right())} {
				if err != nil {
					r.ErrorIs(err, cause)
					canceled++
				}
			}
		}
		r.NotZero(canceled, "not one of them had to wait")
		r.NoError(w.Fence(ctx))
	}, disturbed(faulty.Plan{Seed: 3, DelayCompletions: 1, MaxDelay: 2 * time.Millisecond, MaxPolls: 1 << 20}))
}
