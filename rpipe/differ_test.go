package rpipe_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

// differing are options of two ends that do not fit each other.
var differing = map[string][2][]rpipe.Option{
	"heaps":  {{rpipe.WithHeap(1 << 20)}, {rpipe.WithHeap(2 << 20)}},
	"widths": {{rpipe.WithHeap(2048), rpipe.WithWidth(2)}, {rpipe.WithHeap(2048), rpipe.WithWidth(900)}},
	"pull":   {{rpipe.WithPull()}, nil},
}

// eachDifference runs test on every transport, and over a pool, with the options
// of both ends.
func eachDifference(t *testing.T, test func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option)) {
	for name, opts := range differing {
		t.Run(name, func(t *testing.T) {
			testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) { test(ctx, r, opts[r.Me]) })
				t.Run("over a window", func(t *testing.T) {
					c.Run(t, func(ctx context.Context, r *testjob.Rank) {
						pool, err := rpipe.OverWindow(ctx, r.World, 2, rpipe.WithHeap(2<<20), rpipe.WithWidth(900))
						r.NoError(err)
						test(ctx, r, append(opts[r.Me], rpipe.WithWindow(pool)))
						r.NoError(pool.Close(ctx))
					})
				})
			})
		})
	}
}

func TestMismatchedEndpointsReleaseMemory(t *testing.T) {
	eachDifference(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		before := pipetest.Used(r.World)
		if r.Me == 0 {
			w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
			r.NoError(err)
			r.ErrorIs(w.Send(ctx, []byte{1}), runtime.ErrMismatch)
			r.NoError(w.Close(ctx))
			goneBy(ctx, r, w)
		} else {
			rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
			r.NoError(err)
			_, err = rd.Read(ctx)
			r.ErrorIs(err, runtime.ErrMismatch)
			r.NoError(rd.Close(ctx))
			goneFrom(ctx, r, rd)
		}
		r.LessOrEqual(pipetest.Used(r.World), before+slack)
	})
}

// slack bounds the memory that a rank keeps for later pipes.
const slack = 512 << 10

func TestMismatchedUnusedWriterReleasesMemory(t *testing.T) {
	eachDifference(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		if r.Me == 0 {
			w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
			r.NoError(err)
			r.NoError(w.Close(ctx))
			r.NoError(r.World.Barrier(ctx))
			goneBy(ctx, r, w)
			return
		}
		r.NoError(r.World.Barrier(ctx))
		rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
		r.NoError(err)
		_, err = rd.Read(ctx)
		r.ErrorIs(err, runtime.ErrMismatch)
		r.NoError(rd.Close(ctx))
		goneFrom(ctx, r, rd)
	})
}
