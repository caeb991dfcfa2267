package verbs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A post of a serial QP goes on while another goroutine holds the lock of posts. Any other QP waits
// for it.
func TestPostsOfASerialQueuePairTakeNoLock(t *testing.T) {
	var q QP
	q.cfg.Serial = true
	q.sendMu.Lock()
	q.lockSends()
	q.unlockSends()
	require.False(t, q.sendMu.TryLock(), "the lock is not this QP's to release")
	q.sendMu.Unlock()
	q.cfg.Serial = false
	q.lockSends()
	require.False(t, q.sendMu.TryLock())
	q.unlockSends()
	require.True(t, q.sendMu.TryLock())
}
