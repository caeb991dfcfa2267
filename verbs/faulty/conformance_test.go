//go:build linux

package faulty_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/verbs/loop"
	"github.com/gopgas/gopgas/verbs/shm"
	"github.com/gopgas/gopgas/verbs/tcp"
	"github.com/gopgas/gopgas/verbs/verbstest"
)

// reliable lists plans that break nothing: a program sees the same results with
// them and without.
var reliable = map[string]faulty.Plan{
	"delays":     {DelayStarts: 0.3, DelayCompletions: 0.3},
	"reordering": {Reorder: 0.5, DelayCompletions: 0.1},
	"refusals":   {PartialPosts: 0.5, QueueFull: 0.3, DelayCompletions: 0.1},
	"stalls":     {Stall: faulty.Stall{Every: 50, For: time.Millisecond}},
	"all": {DelayStarts: 0.2, DelayCompletions: 0.2, Reorder: 0.3, PartialPosts: 0.3, QueueFull: 0.2,
		Stall: faulty.Stall{Every: 100, For: 500 * time.Microsecond}},
}

func heap(_ *testing.T, n int) driver.Memory {
	return driver.Memory{Kind: driver.KindHeap, Bytes: make([]byte, n)}
}

func shared(t *testing.T, n int) driver.Memory {
	m, err := memory.NewMemfd("conformance", int64(n))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m.Memory(0, int64(n))
}

func onLoop(*testing.T) (a, b driver.Provider) {
	p := loop.New()
	return p, p
}

func onShm(*testing.T) (a, b driver.Provider) { return shm.New(shm.Config{}), shm.New(shm.Config{}) }

func onTCP(*testing.T) (a, b driver.Provider) {
	cfg := tcp.Config{Listen: "127.0.0.1"}
	return tcp.New(cfg), tcp.New(cfg)
}

// TestConformanceOfLoopWithFaults runs all faults together; when soaking each fault alone,
// too.
func TestConformanceOfLoopWithFaults(t *testing.T) {
	for name, plan := range reliable {
		if !testwatch.Soak() && name != "all" {
			continue
		}
		plan.Seed = rand.Uint64()
		t.Run(fmt.Sprintf("%s seed %d", name, plan.Seed), func(t *testing.T) {
			verbstest.Run(t, verbstest.Harness{New: onLoop, NewMemory: heap, Wrap: wrap(plan)})
		})
	}
}

func TestConformanceOfShmWithFaults(t *testing.T) {
	verbstest.Run(t, verbstest.Harness{New: onShm, NewMemory: shared, Wrap: wrap(reliable["all"])})
}

func TestConformanceOfTCPWithFaults(t *testing.T) {
	verbstest.Run(t, verbstest.Harness{New: onTCP, NewMemory: heap, Wrap: wrap(reliable["all"])})
}

func wrap(plan faulty.Plan) func(driver.Provider) driver.Provider {
	return func(p driver.Provider) driver.Provider { return faulty.New(p, plan) }
}
