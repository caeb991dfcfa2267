package rpipe_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
)

// A reader gets all flushed blocks after the writer's death, whether or not it was
// connected before.
func TestReadReturnsArrivedBlocksBeforeErrRankDead(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for _, connected := range []bool{true, false} {
			t.Run(fmt.Sprint("connected=", connected), func(t *testing.T) {
				err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
					if r.Me == 0 {
						w, err := rpipe.OpenWriter[int](ctx, r.World, 1)
						r.NoError(err)
						for i := range 3 {
							r.NoError(w.Send(ctx, []int{i}))
						}
						r.NoError(w.Flush(ctx))
						r.NoError(r.World.Barrier(ctx))
						if connected {
							r.NoError(r.World.Barrier(ctx))
						}
						r.Die()
					}
					rd, err := rpipe.OpenReader[int](ctx, r.World, 0)
					r.NoError(err)
					if err := r.World.Barrier(ctx); err != nil {
						r.ErrorIs(err, runtime.ErrRankDead, "it was quick")
					}
					next := func(i int) {
						b, err := rd.Read(ctx)
						r.NoError(err)
						r.Equal(i, b.Mem()[0])
						r.NoError(rd.Free(b))
					}
					ctx = context.WithoutCancel(ctx)
					if connected {
						next(0)
						_ = r.World.Barrier(ctx) // the other rank may be dead already
					}
					<-r.Job.Context().Done() // it is known
					if !connected {
						next(0)
					}
					next(1)
					next(2)
					_, err = rd.Read(ctx)
					r.ErrorIs(err, runtime.ErrRankDead)
					_, err = rd.TryRead()
					r.ErrorIs(err, runtime.ErrRankDead)
					r.NoError(rd.Close(ctx))
				})
				require.ErrorContains(t, err, "ended without returning")
			})
		}
	})
}
