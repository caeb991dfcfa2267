package rpipe_test

import (
	"context"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe/active"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// Eight ranks call each other and push records to each other at the same time, all to all. Their
// pipes are full most of the time: more goroutines than cores, and queues that are full in both
// directions.
func TestEightRanksCallAndPushAtOnce(t *testing.T) {
	testjob.EachSample(t, 8, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			records, rounds := pipetest.Fewer(100), pipetest.Fewer(10)
			a, err := active.Open(ctx, r.World, active.Handlers{"echo": pipetest.EchoFrom},
				active.WithWorkers(2), active.WithBatch(64), active.WithHeap(256), active.WithWidth(2))
			r.NoError(err)
			v, err := conveyor.Open[int64](ctx, r.World, conveyor.WithBatch(64), conveyor.WithHeap(128), conveyor.WithWidth(2))
			r.NoError(err)
			var all errgroup.Group
			all.Go(func() error {
				for i := range records {
					for to := range r.N {
						if err := v.Push(ctx, to, int64(i)); err != nil {
							return err
						}
					}
				}
				return v.Finish(ctx)
			})
			for k := range 2 {
				all.Go(func() error {
					for i := range rounds {
						for to := range r.N {
							if _, err := a.Call(ctx, (to+k)%r.N, "echo", make([]byte, i)); err != nil {
								return err
							}
						}
					}
					return nil
				})
			}
			next := make([]int64, r.N)
			for u, err := range v.All(ctx) {
				r.NoError(err)
				r.Equal(next[u.From], u.Value)
				next[u.From]++
			}
			r.NoError(all.Wait())
			for _, n := range next {
				r.EqualValues(records, n)
			}
			r.NoError(a.Close(ctx))
			r.NoError(v.Close(ctx))
		})
	})
}
