package fabric

import (
	goruntime "runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/wait"
)

// TestGoroutineThatFindsPollingLockedIsWoken has a goroutine come to poll while another frees a mailbox.
func TestGoroutineThatFindsPollingLockedIsWoken(t *testing.T) {
	f := &Fabric{bell: wait.NewLocal()}
	var arrived atomic.Bool
	woken := make(chan error, 1)
	go func() { woken <- f.bell.Wait(testwatch.Context(t), arrived.Load) }()
	for !f.bell.Waiting() {
		goruntime.Gosched()
	}
	f.apart(func() {
		require.False(t, f.look())
		arrived.Store(true)
	})
	require.NoError(t, <-woken)
}
