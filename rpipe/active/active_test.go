package active_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/active"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

var wire = binary.LittleEndian

func TestCallReturnsItsOwnReply(t *testing.T) {
	testjob.Each(t, 1, func(t *testing.T, c testjob.Config) {
		pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
			opts := []active.Option{active.WithWindow(over)}
			const callers = 4
			rounds := pipetest.Fewer(20)
			a, err := active.Open(ctx, r.World, active.Handlers{"echo": pipetest.EchoFrom}, append(opts, active.WithBatch(512))...)
			r.NoError(err)
			var all sync.WaitGroup
			errs := make(chan error, callers)
			for k := range callers {
				all.Go(func() {
					for i := range rounds {
						to := (r.Me + k + i) % r.N
						request := bytes.Repeat([]byte{byte(k), byte(i)}, i*7%200)
						reply, err := a.Call(ctx, to, "echo", request)
						if err == nil && !bytes.Equal(wire.AppendUint32(request, uint32(r.Me)), reply) {
							err = fmt.Errorf("request of %d bytes, reply of %d", len(request), len(reply))
						}
						if err != nil {
							errs <- err
							return
						}
					}
				})
			}
			all.Wait()
			close(errs)
			r.NoError(<-errs)
			r.NoError(a.Close(ctx))
			r.NoError(a.Close(ctx))
			r.EqualValues(callers*rounds, a.Stats().Handled)
			_, err = a.Call(ctx, 0, "echo", nil)
			r.ErrorIs(err, rpipe.ErrClosed)
		})
	})
}

func TestCloseReturnsAfterHandlersRan(t *testing.T) {
	testjob.EachSample(t, 3, func(t *testing.T, c testjob.Config) {
		pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
			opts := []active.Option{active.WithWindow(over)}
			const messages = 500
			var sum atomic.Int64
			a, err := active.Open(ctx, r.World, active.Handlers{
				"add": func(_ context.Context, _ int, b []byte) ([]byte, error) {
					sum.Add(int64(wire.Uint32(b)))
					return nil, nil
				}}, opts...)
			r.NoError(err)
			for i := range messages {
				r.NoError(a.Send(ctx, i%r.N, "add", wire.AppendUint32(nil, uint32(i))))
			}
			r.NoError(a.Close(ctx))
			want := 0
			for i := range messages {
				if i%r.N == r.Me {
					want += r.N * i
				}
			}
			r.EqualValues(want, sum.Load())
		})
	})
}

// TestCallReturnsHandlerErrors has handlers fail: the caller gets the error, and
// later calls succeed.
func TestCallReturnsHandlerErrors(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
			opts := []active.Option{active.WithWindow(over)}
			a, err := active.Open(ctx, r.World, active.Handlers{
				"echo":   pipetest.EchoFrom,
				"fails":  func(context.Context, int, []byte) ([]byte, error) { return nil, errors.New("not today") },
				"panics": func(context.Context, int, []byte) ([]byte, error) { panic("at the target") },
				"floods": func(context.Context, int, []byte) ([]byte, error) { return make([]byte, 1<<20), nil },
			}, opts...)
			r.NoError(err)
			if r.Me == 0 {
				for _, want := range []struct {
					name, text string
					kind       error
				}{
					{"fails", "not today", active.ErrHandler}, {"panics", "at the target", active.ErrPanicked},
					{"nowhere", "active.Open", active.ErrNoHandler}, {"floods", "", rpipe.ErrTooLarge},
				} {
					_, err := a.Call(ctx, 1, want.name, []byte("x"))
					var remote *active.RemoteError
					r.ErrorAs(err, &remote)
					r.ErrorIs(err, want.kind)
					r.ErrorContains(err, want.text)
					r.Equal(1, remote.Rank)
					r.NoError(a.Send(ctx, 1, want.name, nil))
					reply, err := a.Call(ctx, 1, "echo", nil)
					r.NoError(err)
					r.Len(reply, 4)
				}
				_, err = a.Call(ctx, 1, "echo", make([]byte, 1<<20))
				r.ErrorIs(err, rpipe.ErrTooLarge)
				_, err = a.Call(ctx, 2, "echo", nil)
				r.ErrorIs(err, runtime.ErrRange)
				r.ErrorIs(a.Send(ctx, -1, "echo", nil), runtime.ErrRange)
			}
			r.NoError(a.Close(ctx))
		})
	})
}

// A call whose context has ended returns at once. Its late reply disturbs no other call.
func TestCallEndsWithContext(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
			opts := []active.Option{active.WithWindow(over)}
			release := make(chan struct{})
			a, err := active.Open(ctx, r.World, active.Handlers{
				"echo": pipetest.EchoFrom,
				"waits": func(ctx context.Context, _ int, b []byte) ([]byte, error) {
					select {
					case <-release:
					case <-ctx.Done():
					}
					return b, nil
				}}, opts...)
			r.NoError(err)
			if r.Me == 0 {
				short, cancel := context.WithTimeoutCause(ctx, 5*time.Millisecond, errors.New("enough"))
				_, err := a.Call(short, 1, "waits", []byte("x"))
				cancel()
				r.ErrorContains(err, "enough")
			}
			r.NoError(r.World.Barrier(ctx))
			close(release)
			for range 10 {
				_, err := a.Call(ctx, 1-r.Me, "echo", nil)
				r.NoError(err)
			}
			r.NoError(a.Close(ctx))
		})
	})
}

// While all workers are busy, messages stay in the pipes, and then their senders
// wait: nothing grows.
func TestSendWaitsForFullTarget(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
			opts := []active.Option{active.WithWindow(over)}
			const workers = 3
			release := make(chan struct{})
			var at atomic.Int32
			a, err := active.Open(ctx, r.World, active.Handlers{
				"holds": func(ctx context.Context, _ int, _ []byte) ([]byte, error) {
					at.Add(1)
					select {
					case <-release:
					case <-ctx.Done():
					}
					return nil, nil
				}}, append(opts, active.WithWorkers(workers), active.WithBatch(256), active.WithHeap(1024))...)
			r.NoError(err)
			sent := 0
			if r.Me == 0 {
				r.NoError(a.Send(ctx, 1, "holds", nil)) // connects
				for err == nil {
					short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
					if err = a.Send(short, 1, "holds", make([]byte, 100)); err == nil {
						sent++
					}
					cancel()
				}
				r.ErrorIs(err, context.DeadlineExceeded)
				r.NoError(ctx.Err())
				r.LessOrEqual(sent, 20, "as many as 1 KiB holds, with those in work")
			}
			for r.Me == 1 && at.Load() == 0 {
				r.NoError(ctx.Err())
				time.Sleep(time.Millisecond)
			}
			r.NoError(r.World.Barrier(ctx))
			if r.Me == 1 {
				r.LessOrEqual(at.Load(), int32(workers))
			}
			close(release)
			r.NoError(a.Close(ctx))
			if r.Me == 1 {
				r.NotZero(at.Load())
			}
		})
	})
}

// All ranks call each other as fast as they can through small pipes: replies get
// through whatever requests do.
func TestRepliesPassRequests(t *testing.T) {
	testjob.EachSample(t, 3, func(t *testing.T, c testjob.Config) {
		pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
			opts := []active.Option{active.WithWindow(over)}
			a, err := active.Open(ctx, r.World, active.Handlers{"echo": pipetest.EchoFrom},
				append(opts, active.WithWorkers(1), active.WithBatch(128), active.WithHeap(256))...)
			r.NoError(err)
			var all sync.WaitGroup
			var failed atomic.Pointer[error]
			for k := range 8 {
				all.Go(func() {
					for i := range 25 {
						if _, err := a.Call(ctx, (k+i)%r.N, "echo", make([]byte, 60)); err != nil {
							failed.Store(&err)
						}
					}
				})
			}
			all.Wait()
			if e := failed.Load(); e != nil {
				r.NoError(*e)
			}
			r.NoError(a.Close(ctx))
		})
	})
}

func TestCallOfDeadRankFails(t *testing.T) {
	testjob.EachSample(t, 3, func(t *testing.T, c testjob.Config) {
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			called := make(chan struct{}, 10)
			a, err := active.Open(ctx, r.World, active.Handlers{
				"echo": pipetest.EchoFrom,
				"waits": func(ctx context.Context, _ int, _ []byte) ([]byte, error) {
					called <- struct{}{}
					<-ctx.Done()
					return nil, nil
				},
			})
			r.NoError(err)
			if r.Me == 2 {
				<-called
				<-called
				short, cancel := context.WithCancel(ctx)
				cancel()
				defer func() { _ = a.Close(short) }() // its goroutines, which a dead process has not
				r.Die()
			}
			_, err = a.Call(ctx, 2, "waits", nil)
			r.NoError(ctx.Err())
			r.Error(err)
			_, err = a.Call(ctx, 2, "echo", nil)
			r.Error(err)
			_, err = a.Call(ctx, 1-r.Me, "echo", nil)
			r.NoError(err)
			_ = a.Close(ctx) // requests to the dead are lost
			r.NoError(ctx.Err())
		})
		require.ErrorContains(t, err, "rank 2")
	})
}

// A job that ends takes its active messages with it; what waits says so.
func TestCallEndsWithJob(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		late := make(chan error, 2)
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			a, err := active.Open(ctx, r.World, active.Handlers{
				"echo":  pipetest.EchoFrom,
				"waits": func(ctx context.Context, _ int, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() },
			})
			r.NoError(err)
			_, err = a.Call(ctx, 1-r.Me, "echo", nil)
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
			go func() {
				_, err := a.Call(context.WithoutCancel(ctx), 1-r.Me, "waits", nil)
				late <- err
			}()
		})
		for range 2 {
			select {
			case err := <-late:
				require.Error(t, err)
			case <-time.After(testwatch.Patience()):
				require.Fail(t, "a call outlives its job")
			}
		}
	})
}
