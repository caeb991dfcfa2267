package rpipe_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/active"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/rpipe/fan"
)

// Records that were read and not handed out lie in memory that Close gives away.

func TestPullReturnsErrClosedAfterClose(t *testing.T) {
	testjob.EachTransport(t, 1, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			v, err := conveyor.Open[int64](ctx, r.World)
			r.NoError(err)
			for i := range int64(3) {
				r.NoError(v.Push(ctx, 0, i))
			}
			r.NoError(v.Flush(ctx))
			first, _, err := v.Pull(ctx)
			r.NoError(err)
			r.Zero(first)
			_ = v.Close(ctx) // records are lost, which may be an error
			_, _, err = v.Pull(ctx)
			r.ErrorIs(err, rpipe.ErrClosed)
			_, _, err = v.TryPull()
			r.ErrorIs(err, rpipe.ErrClosed)
		})
	})
}

func TestRequestKeepsItsBytesUntilHandlerReturns(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			const request = "the request"
			began, goOn, seen := make(chan struct{}), make(chan struct{}), make(chan string, 1)
			a, err := active.Open(ctx, r.World, active.Handlers{"slow": func(_ context.Context, _ int, request []byte) ([]byte, error) {
				close(began)
				<-goOn
				seen <- string(request)
				return nil, nil
			}})
			r.NoError(err)
			if r.Me == 0 {
				r.NoError(a.Send(ctx, 1, "slow", []byte(request)))
				r.NoError(a.Flush(ctx))
			} else {
				<-began
			}
			brief, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			if err := a.Close(brief); r.Me == 1 {
				r.Error(err, "a handler runs")
			}
			r.NoError(r.World.Barrier(ctx)) // now Close can give the memory away
			if r.Me == 1 {
				for range 16 { // new ends get that memory
					rd, err := rpipe.OpenReader[byte](ctx, r.World, 0)
					r.NoError(err)
					defer func() { _ = rd.Close(noTime()) }()
					time.Sleep(time.Millisecond)
				}
				close(goOn)
				r.Equal(request, <-seen)
			}
			r.NoError(r.World.Barrier(ctx))
		})
	})
}

// noTime is a context that has ended.
func noTime() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestFanInClosesDuringTryRead(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for range 20 {
				if r.Me == 1 {
					w, err := rpipe.OpenWriter[byte](ctx, r.World, 0)
					r.NoError(err)
					_ = w.Send(ctx, []byte{1})
					_ = w.Close(noTime())
					continue
				}
				f, err := fan.OpenIn[byte](ctx, r.World, []int{1})
				r.NoError(err)
				over := make(chan struct{})
				go func() {
					defer close(over)
					for {
						if _, _, err := f.TryRead(); err != nil && !errors.Is(err, rpipe.ErrWouldBlock) {
							return
						}
					}
				}()
				time.Sleep(100 * time.Microsecond)
				_ = f.Close(noTime())
				<-over
			}
		})
	})
}
