package tcp_test

import (
	"testing"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/tcp"
	"github.com/gopgas/gopgas/verbs/verbstest"
)

func TestConformance(t *testing.T) {
	verbstest.Run(t, verbstest.Harness{
		New: func(*testing.T) (a, b driver.Provider) {
			return tcp.New(tcp.Config{Listen: "127.0.0.1"}), tcp.New(tcp.Config{Listen: "127.0.0.1"})
		},
		NewMemory: func(_ *testing.T, n int) driver.Memory { return driver.Memory{Bytes: heap(n)} },
	})
}
