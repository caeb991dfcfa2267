//go:build linux

package tcp_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/identity"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/tcp"
	"github.com/gopgas/gopgas/verbs/verbstest"
)

func TestConformance(t *testing.T) { conform(t, tcp.Config{Listen: "127.0.0.1"}, 0) }

// TestTLSConformance leaves out checks ahead of the wire and updates of memory behind it: TLS
// changes neither. Its group Stress has requests of all kinds.
func TestTLSConformance(t *testing.T) {
	keys, err := identity.Config(bytes.Repeat([]byte{7}, 32), identity.Data)
	require.NoError(t, err)
	conform(t, tcp.Config{Listen: "127.0.0.1", TLS: keys}, 12, // all of crypto/tls
		"Transfer", "Order", "Message", "Lifetime", "Waiting", "Landing", "Cost", "Stress")
}

func conform(t *testing.T, cfg tcp.Config, allocations int, only ...string) {
	verbstest.Run(t, verbstest.Harness{
		New:         func(*testing.T) (a, b driver.Provider) { return tcp.New(cfg), tcp.New(cfg) },
		Only:        only,
		Allocations: allocations,
		NewMemory:   func(_ *testing.T, n int) driver.Memory { return driver.Memory{Bytes: heap(n)} },
	})
}
