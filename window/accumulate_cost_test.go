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

// TestAccumulatesOverTCPAreOneRequest counts the requests of one call of rank 0.
func TestAccumulatesOverTCPAreOneRequest(t *testing.T) {
	var mu sync.Mutex
	var ranks []*trace.Provider
	testjob.Config{Provider: "tcp", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		const most = driver.MaxAccumulate / 8
		w := allocate[float64](ctx, r, 3*most)
		src, old := make([]float64, 3*most), make([]float64, 3*most)
		sum, product := window.Sum[float64](), window.Prod[float64]()
		r.NoError(w.Fence(ctx))
		if r.Me == 1 { // the target
			r.NoError(w.Fence(ctx))
			return
		}
		for _, c := range []struct {
			name     string
			op       driver.Opcode
			requests uint64
			call     func() error
		}{
			{"a few", driver.OpAccumulate, 1, func() error { return window.Accumulate(ctx, w, 1, 1, src[:100], sum) }},
			{"most", driver.OpAccumulate, 1, func() error { return window.Accumulate(ctx, w, 1, 1, src[:most], product) }},
			{"more", driver.OpAccumulate, 3, func() error { return window.Accumulate(ctx, w, 1, 0, src, sum) }},
			{"started", driver.OpAccumulate, 1, func() error {
				return started(ctx)(window.StartAccumulate(ctx, w, 1, 1, src[:most], sum))
			}},
			{"get", driver.OpAccumulate, 1, func() error { return window.GetAccumulate(ctx, w, 1, 1, src[:most], old[:most], sum) }},
			{"started get", driver.OpAccumulate, 1, func() error {
				return started(ctx)(window.StartGetAccumulate(ctx, w, 1, 1, src[:most], old[:most], sum))
			}},
			{"load", driver.OpAccumulate, 1, func() error {
				return window.GetAccumulate(ctx, w, 1, 1, nil, old[:most], window.NoOp[float64]())
			}},
			{"fetch", driver.OpAtomic, 1, func() error { _, err := window.FetchOp(ctx, w, 1, 1, 2, product); return err }},
			{"started fetch", driver.OpAtomic, 1, func() error {
				return started(ctx)(window.StartFetchOp(ctx, w, 1, 1, 2, sum, &old[0]))
			}},
			{"started swap", driver.OpAtomic, 1, func() error {
				return started(ctx)(window.StartCompareSwap(ctx, w, 1, 1, 2, 3, &old[0]))
			}},
		} {
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
