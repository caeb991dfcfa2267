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

// postsOfCall is a call on rank 1, and the number of requests of one kind that it posts. It posts no
// others.
type postsOfCall struct {
	name     string
	op       driver.Opcode
	requests uint64
	call     func() error
}

// countPostsOverTCP makes a window of n elements at two ranks, and compares the requests of each of rank
// 0's calls.
func countPostsOverTCP(t *testing.T, n int, calls func(ctx context.Context, r *testjob.Rank, w *window.Window[float64]) []postsOfCall) {
	var mu sync.Mutex
	var ranks []*trace.Provider
	testjob.Config{Provider: "tcp", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[float64](ctx, r, n)
		r.NoError(w.Fence(ctx))
		if r.Me == 1 { // the target
			r.NoError(w.Fence(ctx))
			return
		}
		for _, c := range calls(ctx, r, w) {
			r.NoError(c.call())
			r.NoError(w.Flush(ctx, 1))
			for _, traced := range ranks {
				traced.Reset()
			}
			r.NoError(c.call())
			var posted, others uint64
			for _, traced := range ranks {
				if total := traced.Snapshot().Total; total.Posted[c.op] > 0 {
					posted, others = posted+total.Posted[c.op], total.Requests()-total.Posted[c.op]
				}
			}
			r.Equal([2]uint64{c.requests, 0}, [2]uint64{posted, others}, c.name)
			r.NoError(w.Flush(ctx, 1))
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
