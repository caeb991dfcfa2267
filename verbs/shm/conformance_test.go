package shm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/shm"
	"github.com/gopgas/gopgas/verbs/verbstest"
)

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
