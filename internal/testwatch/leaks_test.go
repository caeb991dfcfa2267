package testwatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLeaksGivesGoroutinesTheTimeToEnd has a goroutine outlive the half second of goleak.
func TestLeaksGivesGoroutinesTheTimeToEnd(t *testing.T) {
	go time.Sleep(time.Second)
	require.NoError(t, Leaks())
}
