package farheap_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/farheap"
	"github.com/gopgas/gopgas/runtime"
)

func TestMain(m *testing.M) { testjob.Main(m, bodiesOfHeaps()) }

var (
	queued = testjob.Config{Provider: "loop", Queued: true, Ranks: 1}
	mapped = testjob.Config{Provider: "loop", Ranks: 1}
)

// A body runs a rank's part of a test with heaps of the given options.
type body = func(ctx context.Context, r *testjob.Rank, opts []farheap.Option)

// memories lists where heaps can lie. Each wraps a body.
var memories = map[string]func(f body) body{
	"fabric": func(f body) body { return f },
	"window": overWindow,
}

func overWindow(f body) body {
	return func(ctx context.Context, r *testjob.Rank, opts []farheap.Option) {
		pool, err := rpipe.OverWindow(ctx, r.World, 2)
		r.NoError(err)
		f(ctx, r, append(opts[:len(opts):len(opts)], farheap.WithWindow(pool)))
		if err := pool.Close(ctx); err != nil {
			r.ErrorIs(err, runtime.ErrRankDead)
		}
	}
}

func options(o ...farheap.Option) []farheap.Option { return o }

// ended returns a context that has ended.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// used returns how much of this rank's heap is allocated.
func used(t *runtime.Team) int64 { return team.Of(t).Arena().Used() }

// leave passes a barrier behind which a rank dies: the news may be first.
func leave(ctx context.Context, r *testjob.Rank) {
	if err := r.World.Barrier(ctx); err != nil {
		r.ErrorIs(err, runtime.ErrRankDead)
	}
}
