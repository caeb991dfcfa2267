package fan_test

import (
	"context"
	"slices"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// TestFanInReadsTenThousandPipes has two ranks write into 5,000 pipes each; on tcp,
// where to connect them takes a while, into 200, unless there is time.
func TestFanInReadsTenThousandPipes(t *testing.T) {
	for _, c := range []testjob.Config{{Provider: "shm", Ranks: 3}, {Provider: "loop", Ranks: 3},
		{Provider: "loop", Queued: true, Ranks: 3}, {Provider: "tcp", Ranks: 3}} {
		if testwatch.Race && c.Provider == "shm" || c.Provider == "loop" && !testwatch.Race && !testjob.Soak() {
			continue
		}
		pipes := 10_000
		if c.Provider == "tcp" && !testjob.Soak() {
			pipes = 400
		}
		pipes = pipetest.Fewer(pipes) / 2 * 2
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				before := pipetest.Used(r.World)
				if r.Me > 0 {
					writers := make([]*rpipe.Writer[int32], pipes/2)
					for i := range writers {
						w, err := rpipe.OpenWriter[int32](ctx, r.World, 0, pipetest.Small...)
						r.NoError(err)
						writers[i] = w
					}
					for i, w := range writers {
						r.NoError(w.Send(ctx, []int32{int32(r.Me), int32(i)}))
					}
					t.Logf("rank %d: %d bytes of heap a writer", r.Me, (pipetest.Used(r.World)-before)/int64(pipes/2))
					for _, w := range writers {
						r.NoError(w.Close(ctx))
					}
					return
				}
				from := make([]int, pipes)
				for i := range from {
					from[i] = 1 + i%2
				}
				f, err := fan.OpenIn[int32](ctx, r.World, from, pipetest.Small...)
				r.NoError(err)
				each := (pipetest.Used(r.World) - before) / int64(pipes)
				t.Logf("%d bytes of heap a reader", each)
				r.Less(each, int64(1200+256<<10/pipes), "beside the rest of the last slab")
				seen := make([]bool, pipes)
				for b, err := range f.All(ctx) {
					r.NoError(err)
					r.True(slices.Equal([]int32{int32(1 + b.From%2), int32(b.From / 2)}, b.Mem()), "pipe %d: %d", b.From, b.Mem())
					seen[b.From] = true
					r.NoError(f.Free(b.Block))
				}
				r.NotContains(seen, false)
				r.NoError(f.Close(ctx))
			})
		})
	}
}
