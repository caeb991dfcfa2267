package collectives_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
)

// TestCallsAgreeOnABadDay has the network delay, reorder and refuse for a moment
// whatever it may.
func TestCallsAgreeOnABadDay(t *testing.T) {
	for _, base := range []testjob.Config{{Provider: "loop", Queued: true, Ranks: 3}, {Provider: "tcp", Ranks: 4}} {
		t.Run(base.String(), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			wrap := runtime.WithWrap(func(p driver.Provider) driver.Provider {
				return faulty.New(p, faulty.Plan{Seed: seed, QueueFull: 0.1, PartialPosts: 0.3, DelayStarts: 0.3, Reorder: 1, HideMapper: true})
			})
			base.Run(t, func(ctx context.Context, r *testjob.Rank) {
				for _, tr := range allTrials() {
					rnd := rand.New(rand.NewPCG(seed, 2))
					for range 3 {
						try(ctx, r, tr, draw(rnd, r.N, 16<<10))
					}
				}
			}, wrap)
		})
	}
}
