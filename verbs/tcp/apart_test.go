//go:build linux

package tcp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// newApart makes a queue pair that needs a connection of its own.
func (n *node) newApart() *qp {
	q := n.newQP(8)
	q.apart = true
	return q
}

// TestApartQueuePairHasConnectionOfItsOwn connects queue pairs of both kinds, in turn.
func TestApartQueuePairHasConnectionOfItsOwn(t *testing.T) {
	d, a, qd, _ := dialed(t)
	seen := map[*link]bool{qd.connection(): true}
	for range 3 {
		rd, ra := d.newApart(), a.newApart()
		connect(t, rd, ra.Address())
		connect(t, ra, rd.Address())
		works(t, d, a, rd)
		works(t, a, d, ra)
		require.NotContains(t, seen, rd.connection())
		seen[rd.connection()] = true
	}
	rd, ra := d.newQP(8), a.newQP(8)
	connect(t, rd, ra.Address())
	connect(t, ra, rd.Address())
	works(t, d, a, rd)
	require.Same(t, qd.connection(), rd.connection(), "it has room for a second stream")
}

// TestFurtherConnectionsAreDialedWithoutPause stops the acceptor, so that no stream stands.
// The dialer needs a connection for each queue pair.
func TestFurtherConnectionsAreDialedWithoutPause(t *testing.T) {
	d, a := dialing(t)
	var all []*qp
	var peers [][]byte
	for range 4 {
		all, peers = append(all, d.newApart()), append(peers, a.newApart().Address())
	}
	defer a.stall()()
	for i, q := range all {
		connect(t, q, peers[i])
	}
	p := all[0].path
	eventually(t, "four connections", func() bool {
		d.token.Lock()
		defer d.token.Unlock()
		return len(p.links) == len(all)
	})
	d.token.Lock()
	defer d.token.Unlock()
	require.Equal(t, firstPause, p.pause, "each pause doubles it")
	for _, q := range all {
		require.Equal(t, driver.StateRTS, q.state)
	}
}
