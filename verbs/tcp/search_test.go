//go:build linux

package tcp

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// apart connects two nodes by one queue pair. The first node dials, and a second queue
// pair needs a connection of its own.
func apart(t *testing.T) (d, a *node, qd *qp) {
	t.Helper()
	cfg := Config{Listen: "127.0.0.1", Streams: 1}
	d, a = newNodeWith(t, cfg, 64, driver.AllAccess), newNodeWith(t, cfg, 64, driver.AllAccess)
	if d.id > a.id {
		d, a = a, d
	}
	qd, qa := d.newQP(4), a.newQP(4)
	connect(t, qd, qa.Address())
	connect(t, qa, qd.Address())
	settled(t, d, a, qd)
	return d, a, qd
}

// TestQueuePairDoesNotInheritFailureOfSearch has a queue pair dial a port at which no
// device listens. The next queue pair dials the peer's port.
func TestQueuePairDoesNotInheritFailureOfSearch(t *testing.T) {
	d, a, qd := apart(t)
	right := qd.path.endpoints
	redirect(qd, []netip.AddrPort{deaf(t)})
	late, never := d.newQP(4), a.newQP(4)
	require.NoError(t, late.Modify(t.Context(), driver.StateRTR, driver.Attr{Peer: never.Address()}))
	require.ErrorIs(t, d.event().Err, unix.ECONNREFUSED)

	redirect(qd, right)
	next, peer := d.newQP(4), a.newQP(4)
	connect(t, next, peer.Address())
	connect(t, peer, next.Address())
	works(t, d, a, next)
	works(t, d, a, qd)
	require.Empty(t, d.events)
}

// redirect makes the path of q dial other endpoints.
func redirect(q *qp, to []netip.AddrPort) {
	q.dev.token.Lock()
	defer q.dev.token.Unlock()
	q.path.endpoints = to
}

// deaf returns the address of a socket that does not listen.
func deaf(t *testing.T) netip.AddrPort {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, socketType, 0)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) }) //nolint:errcheck // nothing was sent
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := unix.Getsockname(fd)
	require.NoError(t, err)
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(name.(*unix.SockaddrInet4).Port))
}

// TestClosedQueuePairEndsItsAttempt closes the queue pair for which the device dials. The
// peer's host does not answer, since the peer accepts no connection.
func TestClosedQueuePairEndsItsAttempt(t *testing.T) {
	d, a, qd := apart(t)
	late, never := d.newQP(4), a.newQP(4).Address()
	resume := a.stall()
	require.NoError(t, unix.Listen(a.listener, 0))
	first, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(a.endpoints[0])) // fills the socket's queue
	require.NoError(t, err)
	defer first.Close() //nolint:errcheck // nothing was sent
	connect(t, late, never)
	require.NotNil(t, attempt(qd))
	require.NoError(t, late.Close())
	require.Nil(t, attempt(qd))
	resume()
	works(t, d, a, qd)
}

// attempt returns the connection that q's device dials for q's path.
func attempt(q *qp) *link {
	q.lock()
	defer q.unlock()
	return q.path.attempt
}
