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

func TestTLSConformance(t *testing.T) {
	keys, err := identity.Config(bytes.Repeat([]byte{7}, 32), identity.Data)
	require.NoError(t, err)
	conform(t, tcp.Config{Listen: "127.0.0.1", TLS: keys}, 12) // all of crypto/tls
}

func conform(t *testing.T, cfg tcp.Config, allocations int) {
	verbstest.Run(t, verbstest.Harness{
		New:         func(*testing.T) (a, b driver.Provider) { return tcp.New(cfg), tcp.New(cfg) },
		Allocations: allocations,
		NewMemory:   func(_ *testing.T, n int) driver.Memory { return driver.Memory{Bytes: heap(n)} },
	})
}
