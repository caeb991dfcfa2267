package collectives_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
)

// TestAllToAllOfLongBlocksAgreesOverAFaultyProvider is the same for messages that land, of which
// the device takes over next to nothing.
func TestAllToAllOfLongBlocksAgreesOverAFaultyProvider(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	wrap := runtime.WithWrap(func(p driver.Provider) driver.Provider {
		return faulty.New(p, faulty.Plan{Seed: seed, QueueFull: 0.1, PartialPosts: 0.3, DelayStarts: 0.3, MaxInline: 64, HideMapper: true})
	})
	testjob.Config{Provider: "tcp", Ranks: 3}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		const block = 300_000 // words
		in, out := make([]int64, r.N*block), make([]int64, r.N*block)
		for round := range 3 {
			for i := range in {
				in[i] = int64(round)<<56 | int64(r.Me)<<48 | int64(i)
			}
			r.NoError(collectives.AllToAll(ctx, r.World, in, out))
			for i, v := range out {
				if want := int64(round)<<56 | int64(i/block)<<48 | int64(r.Me*block+i%block); v != want {
					r.Equal(want, v, "word %d", i)
				}
			}
		}
	}, wrap)
}

// TestCallsAgreeWithAModelOverAFaultyProvider has the network delay, reorder and refuse for a moment
// whatever it may.
func TestCallsAgreeWithAModelOverAFaultyProvider(t *testing.T) {
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
