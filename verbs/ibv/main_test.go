package ibv

import (
	"testing"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// TestMain fails if the tests leave goroutines behind.
func TestMain(m *testing.M) { testwatch.Main(m) }
