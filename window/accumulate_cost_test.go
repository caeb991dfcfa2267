package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/window"
)

func TestAccumulatesOverTCPAreOneRequest(t *testing.T) {
	const most = driver.MaxAccumulate / 8
	comparePostsOverTCP(t, 3*most, func(ctx context.Context, _ *testjob.Rank, w *window.Window[float64]) []postsOfCall {
		src, old := make([]float64, 3*most), make([]float64, 3*most)
		sum, product := window.Sum[float64](), window.Prod[float64]()
		return []postsOfCall{
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
		}
	})
}
