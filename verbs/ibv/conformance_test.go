//go:build ibverbs

package ibv_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/verbs/ibv"
	"github.com/gopgas/gopgas/verbs/verbstest"
)

// requiredEnv, set to 1, makes a machine without an RDMA device a failure.
const requiredEnv = "GOPGAS_IBV_REQUIRED"

// config sets a short timeout, since peers die in several cases.
var config = ibv.Config{PeerTimeout: 2 * time.Second}

// needDevice skips the test on a machine without an RDMA device.
func needDevice(t *testing.T) driver.Provider {
	t.Helper()
	p := ibv.New(config)
	devices, err := p.Devices(t.Context())
	require.NoError(t, err)
	if len(devices) > 0 {
		return p
	}
	if os.Getenv(requiredEnv) == "1" {
		t.Fatalf("%s=1, but no RDMA device has an active port; the kernel knows %v", requiredEnv, ibv.Present())
	}
	t.Skipf("no RDMA device has an active port; the kernel knows %v", ibv.Present())
	return nil
}

// onDevices returns the function by which a harness opens two contexts with
// cfg.
func onDevices(cfg ibv.Config) func(t *testing.T) (a, b driver.Provider) {
	return func(t *testing.T) (a, b driver.Provider) {
		needDevice(t)
		return ibv.New(cfg), ibv.New(cfg)
	}
}

// bothKinds makes memory of the Go heap and of memfds by turns.
func bothKinds() func(t *testing.T, n int) driver.Memory {
	turn := 0
	return func(t *testing.T, n int) driver.Memory {
		turn++
		if turn%2 == 0 {
			return heap(n)
		}
		return shared(t, n)
	}
}

// heap returns Go memory. It is 64-aligned, as all large allocations of the Go
// heap are.
func heap(n int) driver.Memory {
	return driver.Memory{Kind: driver.KindHeap, Bytes: make([]byte, n)}
}

func shared(t *testing.T, n int) driver.Memory {
	m, err := memory.NewMemfd("conformance", int64(n))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m.Memory(0, int64(n))
}

func TestConformance(t *testing.T) {
	infos, err := needDevice(t).Devices(t.Context())
	require.NoError(t, err)
	for _, info := range infos {
		t.Logf("%+v", info)
	}
	verbstest.Run(t, verbstest.Harness{New: onDevices(config), NewMemory: bothKinds()})
}

// TestConformanceHiddenCapabilities hides the device's optional abilities, and
// adds the delays of a slow device.
func TestConformanceHiddenCapabilities(t *testing.T) {
	needDevice(t)
	least := config
	least.MaxInline, least.MTU = -1, 256
	plan := faulty.Plan{DelayStarts: 0.2, DelayCompletions: 0.2, PartialPosts: 0.3, QueueFull: 0.2}
	verbstest.Run(t, verbstest.Harness{New: onDevices(least), NewMemory: bothKinds(),
		Wrap: func(p driver.Provider) driver.Provider { return faulty.New(p, plan) }})
}
