package tcp

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestAQueuePairThatConnectsKeepsADescriptorUntilItIsConnected(t *testing.T) {
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

func TestAQueuePairThatIsResetGivesItsDescriptorBack(t *testing.T) {
	a, b := newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
	qa, qb := a.newQP(4), b.newQP(4)
	connect(t, qa, qb.Address())
	spare := spareOf(qa)
	require.NoError(t, qa.Modify(t.Context(), driver.StateReset, driver.Attr{}))
	_, err := unix.FcntlInt(uintptr(spare), unix.F_GETFD, 0)
	require.ErrorIs(t, err, unix.EBADF)
}

// spareOf is the descriptor that q keeps for its connection.
func spareOf(q *qp) int {
	q.dev.token.Lock()
	defer q.dev.token.Unlock()
	q.lock()
	defer q.unlock()
	return q.dialing.spare
}
