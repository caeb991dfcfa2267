package ibv

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails on goroutines that the tests leave behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
