package window_test

import (
	"context"
	"sync"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/trace"
	"github.com/gopgas/gopgas/window"
)

// requests counts work requests by their operation.
type requests map[driver.Opcode]uint64

// countPostsOverTCP has rank 0 of two run body on a window of n elements. Its argument posted makes a
// call twice, and returns the requests of the second time: the first one connects. Rank 1, the target,
// posts none.
func countPostsOverTCP[T any](t *testing.T, n int, body func(ctx context.Context, r *testjob.Rank, w *window.Window[T], posted func(call func() error) requests)) {
	var mu sync.Mutex
	var ranks []*trace.Provider
	testjob.Config{Provider: "tcp", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[T](ctx, r, n)
		r.NoError(w.Fence(ctx))
		if r.Me == 0 {
			body(ctx, r, w, func(call func() error) requests {
				r.NoError(call())
				r.NoError(w.Flush(ctx, 1))
				for _, traced := range ranks {
					traced.Reset()
				}
				r.NoError(call())
				all := requests{}
				for _, traced := range ranks {
					for op, n := range traced.Snapshot().Total.Posted {
						if n > 0 {
							all[driver.Opcode(op)] += n
						}
					}
				}
				r.NoError(w.Flush(ctx, 1))
				return all
			})
			r.NoError(w.PutNotify(ctx, 1, 0, nil, window.Signal{Value: 1}))
		} else {
			_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{0}, Value: 1})
			r.NoError(err)
		}
		r.NoError(w.Fence(ctx))
	}, runtime.WithWrap(func(p driver.Provider) driver.Provider {
		mu.Lock()
		defer mu.Unlock()
		traced := trace.New(p)
		ranks = append(ranks, traced)
		return traced
	}))
}

// postsOfCall is a call on rank 1, and the number of requests of one kind that it posts. It posts no
// others.
type postsOfCall struct {
	name     string
	op       driver.Opcode
	requests uint64
	call     func() error
}

// comparePostsOverTCP compares the requests of each of rank 0's calls.
func comparePostsOverTCP(t *testing.T, n int, calls func(ctx context.Context, r *testjob.Rank, w *window.Window[float64]) []postsOfCall) {
	countPostsOverTCP(t, n, func(ctx context.Context, r *testjob.Rank, w *window.Window[float64], posted func(func() error) requests) {
		for _, c := range calls(ctx, r, w) {
			r.Equal(requests{c.op: c.requests}, posted(c.call), c.name)
		}
	})
}
