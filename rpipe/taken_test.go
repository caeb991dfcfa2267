package rpipe_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// over is a context that has ended: a call under it takes what has arrived, and gives up
// where it would send a request to the other rank.
func over(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func TestArrivedReportsBlockOfCanceledRead(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				w, err := rpipe.OpenWriter[int](ctx, r.World, 1, pipetest.Small...)
				r.NoError(err)
				r.NoError(w.Send(ctx, []int{42}))
				r.NoError(w.Flush(ctx))
				r.NoError(r.World.Barrier(ctx))
				r.NoError(w.Close(ctx))
				return
			}
			rd, err := rpipe.OpenReader[int](ctx, r.World, 0, pipetest.Small...)
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
			// It takes the notification, and meets a writer without a wait in mapped memory only.
			b, err := rd.Read(over(ctx))
			if err != nil {
				r.ErrorIs(err, context.Canceled)
				r.True(rd.Arrived())
				b, err = rd.TryRead()
			}
			r.NoError(err)
			r.Equal([]int{42}, b.Mem())
			r.NoError(rd.Free(b))
			r.NoError(rd.Close(ctx))
		})
	})
}

func TestArrivalsReportBlockAfterFreeMakesRoom(t *testing.T) {
	pipetest.Queued.Run(t, func(ctx context.Context, r *testjob.Rank) {
		rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, pipetest.TwoFit...)
		r.NoError(err)
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, pipetest.TwoFit...)
		r.NoError(err)
		sent := make(chan error, 1)
		go func() {
			for i := range byte(3) {
				if err := w.Send(ctx, pipetest.SixtyFour(i)); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		var held []rpipe.Block[byte]
		for lacking := false; len(held) < 3; {
			select {
			case <-rd.Arrivals():
			case <-time.After(20 * time.Millisecond): // time for a value that should not come
				if !lacking {
					continue
				}
				lacking = false
				r.NoError(rd.Free(held[0]))
				continue
			case <-ctx.Done():
				r.NoError(context.Cause(ctx))
			}
			b, err := rd.TryRead()
			if lacking = errors.Is(err, rpipe.ErrWouldBlock); !lacking {
				r.NoError(err)
				r.Equal(pipetest.SixtyFour(byte(len(held))), b.Mem())
				held = append(held, b)
			}
		}
		r.NoError(<-sent)
		r.NoError(rd.Close(ctx))
		_ = w.Close(ctx)
	})
}
