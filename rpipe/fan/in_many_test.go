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

// TestFanInFindsQuietPipeAmongManyBesideBusyOne keeps one pipe full. A block of another pipe far
// from it is read after as many reads as it takes to load all words.
func TestFanInFindsQuietPipeAmongManyBesideBusyOne(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		const pipes, busy, quiet = 320, 0, 300
		f, writers := pipetest.FanOfMany(ctx, r, pipes)
		r.NoError(writers[busy].Send(ctx, []int32{1}))
		read := func() int {
			b, from, err := f.Read(ctx)
			r.NoError(err)
			r.NoError(f.Free(b))
			return from
		}
		r.Equal(busy, read())
		r.NoError(writers[busy].Send(ctx, []int32{1}))
		r.NoError(writers[quiet].Send(ctx, []int32{1}))
		reads := 1
		for ; read() == busy; reads++ {
			r.NoError(writers[busy].Send(ctx, []int32{1}))
		}
		r.LessOrEqual(reads, pipes/16+1)
		r.LessOrEqual(f.Stats().Looks, uint64(2*reads+2), "reads look at pipes that have blocks")
		for left := writers[busy].Stats().InFlight; left > 0; left-- {
			if b, _, err := f.TryRead(); err == nil {
				r.NoError(f.Free(b))
			}
		}
		pipetest.CloseMany(ctx, r, f, writers)
	})
}
