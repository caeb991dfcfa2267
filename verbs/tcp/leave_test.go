//go:build linux

package tcp

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// TestStreamOpensAfterAllQueuePairsOfPathLeft leaves a connection to streams that wait
// for queue pairs of the acceptor. One of those connects then, and the other does not.
func TestStreamOpensAfterAllQueuePairsOfPathLeft(t *testing.T) {
	d, a, qd, qa := dialed(t)
	rd, ra, sd, sa := d.newQP(8), a.newQP(8), d.newQP(8), a.newQP(8)
	connect(t, rd, ra.Address())
	eventually(t, "the peer to hear of the first stream", func() bool { return len(ra.waiting()) == 1 })
	require.NoError(t, qa.Close())
	eventually(t, "the stream to be left", func() bool { return qd.connection() == nil })
	connect(t, sd, sa.Address())
	eventually(t, "the peer to hear of the second stream", func() bool { return len(sa.waiting()) == 1 })
	connect(t, ra, rd.Address())
	works(t, d, a, rd)
	works(t, a, d, ra)
	require.Equal(t, driver.StateRTS, sd.currentState(), "it waits for its peer")
}

func TestResetDropsDialInProgress(t *testing.T) {
	d, a := dialing(t)
	q, peer := d.newQP(4), a.newQP(4).Address()
	resume := d.stall()
	q.lock()
	err := q.connect(peer)
	attempt := q.path.attempt
	q.reset()
	q.unlock()
	require.NoError(t, err)
	require.NotNil(t, attempt)
	require.False(t, attempt.up())
	require.Empty(t, d.paths)
	resume()
}

// TestFailedDialSparesStreamsOfOtherConnections fails a dial for two queue pairs that
// find no room in the first connection.
func TestFailedDialSparesStreamsOfOtherConnections(t *testing.T) {
	d, a, qd, _ := dialed(t)
	requesting, first, second := d.newQP(4), d.newQP(4), d.newQP(4)
	peers := [][]byte{a.newQP(4).Address(), a.newQP(4).Address(), a.newQP(4).Address()}
	resume := d.stall()
	var errs []error
	for i, q := range []*qp{requesting, first, second} {
		q.lock()
		errs = append(errs, q.connect(peers[i]))
		q.unlock()
	}
	qd.lock()
	p := qd.path
	p.redial(errSilent)
	order := slices.Clone(p.qps)
	p.unreachable(errSilent)
	qd.unlock()
	resume()
	require.Equal(t, make([]error, 3), errs)
	require.True(t, slices.Equal([]*qp{qd, requesting, second, first}, order))
	require.Equal(t, driver.StateErr, first.currentState())
	require.Equal(t, driver.StateErr, second.currentState())
	require.Equal(t, driver.StateRTR, requesting.currentState(), "it waits for its peer")
}
