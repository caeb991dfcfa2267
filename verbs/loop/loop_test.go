package loop_test

import (
	"testing"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
	"github.com/gopgas/gopgas/verbs/verbstest"
)

func harness() verbstest.Harness {
	return verbstest.Harness{
		New: func(*testing.T) (a, b driver.Provider) {
			p := loop.New()
			return p, p
		},
		NewMemory: func(_ *testing.T, n int) driver.Memory {
			return driver.Memory{Kind: driver.KindHeap, Bytes: make([]byte, n)}
		},
	}
}

func TestConformance(t *testing.T) { verbstest.Run(t, harness()) }
