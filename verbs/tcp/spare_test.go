//go:build linux

package tcp

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestConnectingQueuePairKeepsSpareDescriptor(t *testing.T) {
	a, b := newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
	qa, qb := a.newQP(4), b.newQP(4)
	connect(t, qa, qb.Address())
	require.NotZero(t, spareOf(qa))
	connect(t, qb, qa.Address())
	works(t, a, b, qa)
	works(t, b, a, qb)
	require.Zero(t, spareOf(qa))
	require.Zero(t, spareOf(qb))
}

func TestResetClosesSpareDescriptor(t *testing.T) {
	a, b := newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
	qa, qb := a.newQP(4), b.newQP(4)
	connect(t, qa, qb.Address())
	require.Equal(t, 2, copies(t, qa.dev.listener))
	require.NoError(t, qa.Modify(t.Context(), driver.StateReset, driver.Attr{}))
	require.Equal(t, 1, copies(t, qa.dev.listener))
}

// copies counts the descriptors of this process for fd's socket. The kernel may have
// given the number alone to another socket.
func copies(t *testing.T, fd int) (n int) {
	t.Helper()
	name := func(fd string) string {
		to, _ := os.Readlink("/proc/self/fd/" + fd) // the descriptor may have been closed since
		return to
	}
	socket := name(strconv.Itoa(fd))
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range open {
		if name(entry.Name()) == socket {
			n++
		}
	}
	return n
}

// spareOf returns the descriptor that q keeps for its connection.
func spareOf(q *qp) int {
	q.dev.token.Lock()
	defer q.dev.token.Unlock()
	q.lock()
	defer q.unlock()
	if q.path == nil {
		return 0
	}
	return q.path.spare
}
