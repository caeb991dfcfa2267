//go:build linux

package shm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/shm"
	"github.com/gopgas/gopgas/verbs/verbstest"
)

// TestConformanceOfHeapMemory runs the suite on memory that peers cannot map, with and without
// copies by the system.
func TestConformanceOfHeapMemory(t *testing.T) {
	for name, cfg := range map[string]shm.Config{"copied": {}, "requested": {NoCopies: true, RingBytes: 4 << 10}} {
		t.Run(name, func(t *testing.T) {
			if testwatch.Race {
				t.Skip("the race detector sees the heap, and not what orders the two sides")
			}
			verbstest.Run(t, verbstest.Harness{
				New:       func(*testing.T) (a, b driver.Provider) { return shm.New(cfg), shm.New(cfg) },
				NewMemory: func(_ *testing.T, n int) driver.Memory { return memory.Heap(n) },
				// The owner's goroutine responds. It sleeps between requests, and a sleep allocates.
				Allocations: 20,
			})
		})
	}
}

func TestConformance(t *testing.T) {
	verbstest.Run(t, verbstest.Harness{
		New: func(*testing.T) (a, b driver.Provider) {
			return shm.New(shm.Config{}), shm.New(shm.Config{})
		},
		NewMemory: func(t *testing.T, n int) driver.Memory {
			m, err := memory.NewMemfd("conformance", int64(n))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, m.Close()) })
			return m.Memory(0, int64(n))
		},
	})
}
