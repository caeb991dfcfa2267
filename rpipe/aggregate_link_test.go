package rpipe_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

// Waits on windows end when any rank of their team is gone, and so do those of
// aggregates over a carrier, after what has arrived.
func TestAggregatesOverWindowEndWithAnyRank(t *testing.T) {
	testjob.EachTransport(t, 4, func(t *testing.T, c testjob.Config) {
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			over, err := rpipe.OverWindow(ctx, r.World, 8, rpipe.WithHeap(4096))
			r.NoError(err)
			opts := []rpipe.Option{rpipe.WithHeap(4096), rpipe.WithWindow(over)}
			switch r.Me {
			case 0:
				f, err := fan.OpenIn[int](ctx, r.World, []int{1, 2}, opts...)
				r.NoError(err)
				pipetest.Leave(ctx, r)
				ctx := context.WithoutCancel(ctx)
				sum, from := 0, 0
				for err == nil { // blocks that have arrived are read first
					var b rpipe.Block[int]
					if b, from, err = f.Read(ctx); err == nil {
						sum += b.Mem()[0]
					}
				}
				r.Equal(1+2, sum)
				r.ErrorIs(err, runtime.ErrRankDead)
				r.Equal(-1, from)
			case 1, 2:
				f, err := fan.OpenOut[int](ctx, r.World, []int{0}, opts...)
				r.NoError(err)
				r.NoError(f.Send(ctx, []int{r.Me}))
				r.NoError(f.Flush(ctx))
				pipetest.Leave(ctx, r)
				ctx := context.WithoutCancel(ctx)
				for err == nil { // the reader frees no block
					err = f.Send(ctx, []int{0})
				}
				r.ErrorIs(err, runtime.ErrRankDead)
			case 3:
				pipetest.Leave(ctx, r)
				r.Die()
			}
		})
		require.ErrorContains(t, err, "rank 3: body ended without returning")
		require.NotErrorIs(t, err, testwatch.ErrStuck)
	})
}

// A carrier that closes ends a Read that waits.
func TestFanInEndsWithItsWindow(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			over := pool(ctx, r, 2)
			f, err := fan.OpenIn[int](ctx, r.World, []int{0, 1}, rpipe.WithWindow(over))
			r.NoError(err)
			ended := make(chan error, 1)
			go func() {
				_, _, err := f.Read(ctx)
				ended <- err
			}()
			r.NoError(over.Close(ctx))
			r.ErrorIs(<-ended, rpipe.ErrClosed)
			for err = nil; err == nil || !errors.Is(err, io.EOF) && !errors.Is(err, rpipe.ErrClosed); {
				_, _, err = f.Read(ctx)
			}
			r.NoError(f.Close(ctx))
		})
	})
}
