//go:build linux

package tcp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// TestDialerHoldsFewConnectionsForQueuePairsInInit has a peer open a connection of its own
// for each of many queue pairs that do not know their peer. The device cuts the oldest
// connection. A true peer has dialed before, and dials again.
func TestDialerHoldsFewConnectionsForQueuePairsInInit(t *testing.T) {
	d, a := dialing(t)
	mine, peer := d.newQP(4), a.newQP(4)
	connect(t, mine, peer.Address())
	eventually(t, "the true peer", func() bool { return len(peer.waiting()) == 1 })
	var first *impostor
	for k := range maxEarly + 1 {
		i, q := newImpostor(t, a), a.newQP(1)
		hello := i.hello()
		_, open := i.open(q.num, 9, q.secret)
		i.send(append(hello, open...))
		i.hearsHello() // the device knows the connection
		if k == 0 {
			first = i
		}
	}
	first.hangsUp()
	connect(t, peer, mine.Address())
	works(t, d, a, mine)
	require.Equal(t, driver.StateRTS, peer.currentState())
	a.token.Lock()
	defer a.token.Unlock()
	require.LessOrEqual(t, len(a.early), maxEarly)
	for _, l := range a.early {
		require.Nil(t, l.path, "a connection with a path is not early")
	}
}
