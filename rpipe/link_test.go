package rpipe_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

// A pipeBody runs a rank's part of a test with pipes of the given options.
type pipeBody = func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option)

// links lists the links over which pipes can run. Each wraps a body.
var links = map[string]func(f pipeBody) pipeBody{
	"fabric": func(f pipeBody) pipeBody { return f },
	"window": overWindow,
}

// overWindow opens pipes over a pool, which is there before and closed after
// them, unless a rank is dead by then.
func overWindow(f pipeBody) pipeBody {
	return func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		c := pool(ctx, r, 2)
		f(ctx, r, append(opts[:len(opts):len(opts)], rpipe.WithWindow(c)))
		if err := c.Close(ctx); err != nil {
			r.ErrorIs(err, runtime.ErrRankDead)
		}
	}
}

// pool makes one for pipes with any options that tests use.
func pool(ctx context.Context, r *testjob.Rank, ends int) *rpipe.WindowPool {
	c, err := rpipe.OverWindow(ctx, r.World, ends, rpipe.WithWidth(100))
	r.NoError(err)
	return c
}

// eachLink runs f as a subtest over every link and with every kind of pipe.
func eachLink(t *testing.T, f func(t *testing.T, over func(f pipeBody) pipeBody, opts []rpipe.Option)) {
	for link, over := range links {
		for mode, opts := range pipetest.Modes {
			t.Run(link+"/"+mode, func(t *testing.T) { f(t, over, opts) })
		}
	}
}
