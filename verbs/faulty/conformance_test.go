package faulty_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/verbs/loop"
	"github.com/gopgas/gopgas/verbs/verbstest"
)

// reliable are plans that break nothing: a program on a provider with them
// sees what it would see without.
var reliable = map[string]faulty.Plan{
	"delays":     {DelayStarts: 0.3, DelayCompletions: 0.3},
	"reordering": {Reorder: 0.5, DelayCompletions: 0.1},
	"refusals":   {PartialPosts: 0.5, QueueFull: 0.3, DelayCompletions: 0.1},
	"stalls":     {Stall: faulty.Stall{Every: 50, For: time.Millisecond}},
	"all": {DelayStarts: 0.2, DelayCompletions: 0.2, Reorder: 0.3, PartialPosts: 0.3, QueueFull: 0.2,
		Stall: faulty.Stall{Every: 100, For: 500 * time.Microsecond}},
}

func TestConformanceOfLoopWithFaults(t *testing.T) {
	for name, plan := range reliable {
		for seed := range uint64(2) {
			plan.Seed = seed
			t.Run(fmt.Sprintf("%s seed %d", name, seed), func(t *testing.T) {
				verbstest.Run(t, verbstest.Harness{
					New: func(*testing.T) (a, b driver.Provider) {
						p := loop.New()
						return p, p
					},
					NewMemory: func(_ *testing.T, n int) driver.Memory {
						return driver.Memory{Kind: driver.KindHeap, Bytes: make([]byte, n)}
					},
					Wrap: func(p driver.Provider) driver.Provider { return faulty.New(p, plan) },
				})
			})
		}
	}
}
