package active_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/active"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// A handler that ends its goroutine fails like one that panics: its caller gets the error,
// and its rank goes on with as many workers as before.
func TestEndpointReplacesWorkerAfterGoexit(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			a, err := active.Open(ctx, r.World, active.Handlers{
				"echo": pipetest.EchoFrom,
				"exits": func(context.Context, int, []byte) ([]byte, error) {
					goruntime.Goexit()
					return nil, nil
				},
			}, active.WithWorkers(2))
			r.NoError(err)
			for range 5 {
				_, err := a.Call(ctx, 1-r.Me, "exits", nil)
				r.ErrorIs(err, active.ErrPanicked)
				r.ErrorContains(err, "goroutine")
				r.NoError(a.Send(ctx, 1-r.Me, "exits", nil))
			}
			_, err = a.Call(ctx, 1-r.Me, "echo", []byte("still there"))
			r.NoError(err)
			r.NoError(a.Close(ctx))
			r.EqualValues(10, a.Stats().Failed)
		})
	})
}

// A handler cannot wait for its own end.
func TestCloseInHandlerFails(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			var a *active.Endpoint
			opened := make(chan struct{})
			a, err := active.Open(ctx, r.World, active.Handlers{
				"closes": func(ctx context.Context, _ int, _ []byte) ([]byte, error) {
					<-opened
					return nil, a.Close(ctx)
				},
			})
			r.NoError(err)
			close(opened)
			_, err = a.Call(ctx, 1-r.Me, "closes", nil)
			r.ErrorIs(err, active.ErrHandler)
			r.ErrorContains(err, "handler")
			r.NoError(a.Close(ctx))
		})
	})
}

// Handlers call handlers of their own rank and of the caller's, through the same workers.
func TestHandlersCallBack(t *testing.T) {
	testjob.EachSample(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			var a *active.Endpoint
			opened := make(chan struct{})
			a, err := active.Open(ctx, r.World, active.Handlers{
				"echo": pipetest.EchoFrom,
				"relay": func(ctx context.Context, from int, b []byte) ([]byte, error) {
					<-opened
					if b[0] == 0 {
						return a.Call(ctx, from, "echo", b)
					}
					return a.Call(ctx, (r.Me+1)%r.N, "relay", append([]byte{b[0] - 1}, b[1:]...))
				},
			}, active.WithWorkers(32), active.WithBatch(64), active.WithHeap(512))
			r.NoError(err)
			close(opened)
			for i := range 20 {
				reply, err := a.Call(ctx, i%r.N, "relay", []byte{byte(i % 5), 7, 8})
				r.NoError(err)
				r.Equal([]byte{0, 7, 8}, reply[:3])
			}
			r.NoError(r.World.Barrier(ctx)) // handlers of a rank that closes cannot call
			r.NoError(a.Close(ctx))
		})
	})
}

// All ranks call each other while all close. Each call returns a reply or an error. A rank
// handles each message that Send took without an error.
func TestCallsReturnWhileRanksClose(t *testing.T) {
	testjob.EachSample(t, 3, func(t *testing.T, c testjob.Config) {
		var sent, handled atomic.Int64
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			a, err := active.Open(ctx, r.World, active.Handlers{
				"echo":  pipetest.EchoFrom,
				"count": func(context.Context, int, []byte) ([]byte, error) { handled.Add(1); return nil, nil },
			}, active.WithWorkers(2), active.WithBatch(64))
			r.NoError(err)
			var all sync.WaitGroup
			bad := make(chan error, 8)
			for k := range 4 {
				all.Go(func() {
					for i := 0; ; i++ {
						to := (k + i) % r.N
						if _, err := a.Call(ctx, to, "echo", []byte{1}); err != nil {
							if !errors.Is(err, rpipe.ErrClosed) {
								bad <- err
							}
							return
						}
						if err := a.Send(ctx, to, "count", nil); err != nil {
							return
						}
						sent.Add(1)
					}
				})
			}
			time.Sleep(time.Duration(1+r.Me) * time.Millisecond)
			var closes sync.WaitGroup
			for range 3 {
				closes.Go(func() {
					if err := a.Close(ctx); err != nil {
						bad <- err
					}
				})
			}
			closes.Wait()
			all.Wait()
			close(bad)
			for err := range bad {
				r.NoError(err)
			}
		})
		if got, want := handled.Load(), sent.Load(); got != want {
			t.Errorf("%d messages were taken, %d handled", want, got)
		}
	})
}
