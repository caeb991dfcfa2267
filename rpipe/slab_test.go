package rpipe_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// Small ends share registered memory: many of them take few pages, and give them
// back.
func TestSmallPipesShareMemory(t *testing.T) {
	testjob.EachTransport(t, 1, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			pipes := pipetest.Fewer(1000)
			for range 2 {
				f, writers := pipetest.FanOfMany(ctx, r, pipes)
				open := pipetest.Used(r.World)
				r.Less(open, int64(pipes)*2048+256<<10, "and the rest of the last slab")
				pipetest.CloseMany(ctx, r, f, writers)
				// Lingering ends leave when the next pipe is opened.
				rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, append(pipetest.Small, rpipe.WithName("next"))...)
				r.NoError(err)
				r.Less(pipetest.Used(r.World), int64(432<<10))
				r.NoError(rd.Close(ctx))
			}
		})
	})
}

// A pipe finds its memory zero, whatever lay there before, and reaches no further.
func TestPipeZeroesReusedMemory(t *testing.T) {
	testjob.EachTransport(t, 1, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for range 20 {
				f, writers := pipetest.FanOfMany(ctx, r, 3)
				for i, w := range writers {
					b, err := w.Alloc(ctx, 512/4)
					r.NoError(err)
					r.Zero(b.Mem()[0])
					for k := range b.Mem() {
						b.Mem()[k] = int32(i + 1)
					}
					r.NoError(w.Write(ctx, b))
				}
				for range writers {
					b, from, err := f.Read(ctx)
					r.NoError(err)
					for _, v := range b.Mem() {
						r.EqualValues(from+1, v)
					}
					r.NoError(f.Free(b))
				}
				pipetest.CloseMany(ctx, r, f, writers)
			}
		})
	})
}
