package conveyor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/conveyor"
)

// Ranks that have filled all pipes between them, and close without having pulled
// anything, do not wait for each other.
func TestFullConveyorsClose(t *testing.T) {
	testjob.EachSample(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			v, err := conveyor.Open[int](ctx, r.World, conveyor.WithBatch(64), conveyor.WithHeap(256), conveyor.WithWidth(2))
			r.NoError(err)
			for full := 0; full < r.N; {
				full = 0
				for to := range r.N {
					if err := v.TryPush(to, 1); errors.Is(err, rpipe.ErrWouldBlock) {
						full++
					} else {
						r.NoError(err)
					}
				}
				r.NoError(ctx.Err())
			}
			r.NoError(r.World.Barrier(ctx))
			err = v.Close(ctx)
			r.ErrorIs(err, rpipe.ErrClosed, "what was not pulled is lost")
			r.NoError(ctx.Err())
		})
	})
}

// The clock sends no record again to a rank that is known to be closed.
func TestClockStopsForClosedRank(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			v, err := conveyor.Open[int](ctx, r.World, conveyor.WithBound(time.Millisecond))
			r.NoError(err)
			r.NoError(v.Push(ctx, 1-r.Me, 1))
			_, _, err = v.Pull(ctx)
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
			if r.Me == 1 {
				_ = v.Close(ctx)
				r.NoError(r.World.Barrier(ctx))
				return
			}
			r.NoError(v.Finish(ctx))
			for err = nil; err == nil; {
				_, _, err = v.Pull(ctx)
			}
			r.NoError(r.World.Barrier(ctx))
			r.Eventually(func() bool { return !v.Ticks() }, testwatch.Patience(), time.Millisecond)
			_ = v.Close(ctx)
		})
	})
}

// All calls of a conveyor and of active messages end with their contexts, whatever
// is full.
func TestPushPullAndCallEndWithContext(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			v, err := conveyor.Open[int](ctx, r.World, conveyor.WithBatch(64), conveyor.WithHeap(256), conveyor.WithWidth(2))
			r.NoError(err)
			enough := errors.New("enough")
			ends := func(call func(ctx context.Context) error) {
				short, cancel := context.WithTimeoutCause(ctx, 5*time.Millisecond, enough)
				defer cancel()
				for err = nil; err == nil; {
					r.NoError(ctx.Err())
					err = call(short)
				}
				r.ErrorIs(err, enough)
			}
			_, _, err = v.TryPull()
			r.ErrorIs(err, rpipe.ErrWouldBlock)
			ends(func(ctx context.Context) error { _, _, err := v.Pull(ctx); return err })
			r.NoError(r.World.Barrier(ctx))
			r.NoError(v.Push(ctx, 1-r.Me, 1)) // connects
			ends(func(ctx context.Context) error { return v.Push(ctx, 1-r.Me, 1) })
			ends(v.Finish)
			r.NoError(r.World.Barrier(ctx))
			short, cancel := context.WithTimeoutCause(ctx, 5*time.Millisecond, enough)
			defer cancel()
			_ = v.Close(short)
			r.NoError(r.World.Barrier(ctx))
		})
	})
}
