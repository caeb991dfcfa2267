package rpipe_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/trace"
)

// TestPipesConnectInParallel has many pipes connect, of which the first opens its reader
// last. Each end fetches the card of its peer once.
func TestPipesConnectInParallel(t *testing.T) {
	const pipes = 300
	var mu sync.Mutex
	var traces []*trace.Provider
	traced := runtime.WithWrap(func(p driver.Provider) driver.Provider {
		mu.Lock()
		defer mu.Unlock()
		traces = append(traces, trace.New(p))
		return traces[len(traces)-1]
	})
	reads := func() (n uint64) {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range traces {
			n += p.Snapshot().Total.Posted[driver.OpRead]
		}
		return n
	}
	c := testjob.Config{Provider: "loop", Queued: true, Ranks: 2}
	c.Run(t, func(ctx context.Context, r *testjob.Rank) {
		named := func(i int) []rpipe.Option {
			return append(pipetest.Small[:len(pipetest.Small):len(pipetest.Small)], rpipe.WithName(fmt.Sprint(i)))
		}
		var all errgroup.Group
		var last errgroup.Group
		for i := range pipes {
			group := &all
			if i == 0 {
				group = &last
			}
			if r.Me == 0 {
				w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, named(i)...)
				r.NoError(err)
				group.Go(func() error { return w.Connect(ctx) })
			} else if i > 0 {
				rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, named(i)...)
				r.NoError(err)
				group.Go(func() error { return rd.Connect(ctx) })
			}
		}
		r.NoError(all.Wait())
		r.NoError(r.World.Barrier(ctx))
		if r.Me == 1 {
			rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, named(0)...)
			r.NoError(err)
			r.NoError(rd.Connect(ctx))
		}
		r.NoError(last.Wait())
		r.NoError(r.World.Barrier(ctx))
		r.EqualValues(2*pipes, reads())
		r.NoError(r.World.Barrier(ctx)) // a rank that returns flushes its open pipes, which reads
	}, traced)
}
