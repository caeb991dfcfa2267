package rpipe_test

import (
	"context"
	"maps"
	"slices"
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

// A kind is a link and a mode of pipes.
type kind struct{ link, mode string }

// kinds lists all of them.
var kinds = func() (all []kind) {
	for _, link := range slices.Sorted(maps.Keys(links)) {
		for _, mode := range slices.Sorted(maps.Keys(pipetest.Modes)) {
			all = append(all, kind{link, mode})
		}
	}
	return all
}()

func (k kind) name() string                    { return k.link + "/" + k.mode }
func (k kind) over() func(f pipeBody) pipeBody { return links[k.link] }
func (k kind) opts() []rpipe.Option            { return slices.Clone(pipetest.Modes[k.mode]) }

// eachLink runs f as a subtest over every link and with every kind of pipe.
func eachLink(t *testing.T, f func(t *testing.T, over func(f pipeBody) pipeBody, opts []rpipe.Option)) {
	for _, k := range kinds {
		t.Run(k.name(), func(t *testing.T) { f(t, k.over(), k.opts()) })
	}
}
