// Package verbstest is the conformance suite that every provider passes.
//
//	func TestConformance(t *testing.T) {
//		verbstest.Run(t, verbstest.Harness{
//			New:       func(t *testing.T) (a, b driver.Provider) { p := loop.New(); return p, p },
//			NewMemory: func(t *testing.T, n int) driver.Memory { ... },
//		})
//	}
//
// Each case opens two contexts, a and b, and connects queue pairs between them
// through package verbs. Its name states the promise. A case is skipped only if
// the device advertises that it lacks the capability.
//
// The suite assumes that each completion comes, but not when: a watchdog bounds
// every wait. The target sees a WRITE after a READ behind it has completed, or a
// SEND behind it was received, never before.
package verbstest

import (
	"slices"
	"testing"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A Harness gives the suite access to the package under test.
type Harness struct {
	// New returns the providers of the two ends; they may be the same value. Each
	// case calls it once.
	New func(t *testing.T) (a, b driver.Provider)
	// NewMemory returns n bytes, 64-aligned, that peers may reach. The harness
	// frees them, if needed, in t.Cleanup: after the contexts have closed.
	NewMemory func(t *testing.T, n int) driver.Memory
	// Wrap, if not nil, wraps each provider, for instance by one that injects
	// delays. Run then leaves out the cases about costs only.
	Wrap func(driver.Provider) driver.Provider
	// Only, if not nil, names the groups of cases that Run runs: of a provider that differs from
	// another one, which passes all groups, in a part. All groups run when soaking.
	Only []string
	// Allocations bounds the allocations of one request at both ends together, 0 for a
	// provider whose posts and polls allocate nothing.
	Allocations int
}

// rounds returns the number of times that a case repeats something: n, or a quarter of n behind
// Wrap, since the provider without it passes the suite with n. Soaking, it is n.
func (h *Harness) rounds(n int) int {
	if h.Wrap != nil && !testwatch.Soak() {
		n /= 4
	}
	return testwatch.Rounds(n)
}

// A testCase is one promise, which its name states.
type testCase struct {
	name string
	run  func(t *testing.T, h Harness)
}

// Run runs all cases.
func Run(t *testing.T, h Harness) {
	for _, group := range []struct {
		name  string
		cases []testCase
	}{
		{"Transfer", transferCases()},
		{"Order", orderCases()},
		{"Message", messageCases()},
		{"Atomic", atomicCases()},
		{"Accumulate", accumulateCases()},
		{"Blocks", blocksCases()},
		{"Refusal", refusalCases()},
		{"Queue", queueCases()},
		{"State", stateCases()},
		{"Lifetime", lifetimeCases()},
		{"Waiting", waitingCases()},
		{"Mapping", mappingCases()},
		{"Landing", landingCases()},
		{"Demand", demandCases()},
		{"Cost", costCases()},
		{"Stress", stressCases()},
	} {
		if h.Only != nil && !slices.Contains(h.Only, group.name) && !testwatch.Soak() {
			continue
		}
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) { c.run(t, h) })
			}
		})
	}
}
