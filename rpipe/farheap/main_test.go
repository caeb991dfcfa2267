package farheap_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/farheap"
	"github.com/gopgas/gopgas/runtime"
)

func TestMain(m *testing.M) { testjob.Main(m, bodiesOfHeaps()) }

var (
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
