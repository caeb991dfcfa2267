package rpipe_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// The death of a rank ends no fan-in and no fan-out over a window whose pipes lead to other ranks.
func TestAggregatesOverWindowOutliveOtherRank(t *testing.T) {
	testjob.EachTransport(t, 4, func(t *testing.T, c testjob.Config) {
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			over, err := rpipe.OverWindow(ctx, r.World, 8, rpipe.WithHeap(4096))
			r.NoError(err)
			opts := []rpipe.Option{rpipe.WithHeap(4096), rpipe.WithWindow(over)}
			pipetest.Leave(ctx, r)
			if r.Me == 3 {
				r.Die()
			}
			ctx, cancel := testwatch.With(context.WithoutCancel(ctx)) // the death ends the job's
			defer cancel()
			r.Eventually(func() bool { return team.Of(r.World).Fate(3) != nil }, testwatch.Patience(), time.Millisecond)
			if r.Me > 0 {
				f, err := fan.OpenOut[int](ctx, r.World, []int{0}, opts...)
				r.NoError(err)
				for i := range 100 {
					r.NoError(f.Send(ctx, []int{i}))
				}
				r.NoError(f.Close(ctx))
				return
			}
			f, err := fan.OpenIn[int](ctx, r.World, []int{1, 2}, opts...)
			r.NoError(err)
			sum := 0
			for b, err := range f.All(ctx) {
				r.NoError(err)
				sum += b.Mem()[0]
				r.NoError(f.Free(b.Block))
			}
			r.Equal(2*99*100/2, sum)
			r.NoError(f.Close(ctx))
		})
		require.ErrorContains(t, err, "rank 3: body ended without returning")
		require.NotErrorIs(t, err, testwatch.ErrStuck)
	})
}

// A window that closes ends a Read that waits.
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
