package tcp

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func congestionControl(t *testing.T, fd int) string {
	t.Helper()
	name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	require.NoError(t, err)
	return name
}

func TestNobodyPacesWithinAMachine(t *testing.T) {
	a, b, qa, qb := pair(t, 64)
	settled(t, a, b, qa)
	for _, q := range []*qp{qa, qb} { // one has dialled, the other accepted
		q.mu.Lock()
		require.Equal(t, unpaced, congestionControl(t, q.link.fd))
		q.mu.Unlock()
	}
}

// TestConnectionsFromElsewhereAreUsual has a connection whose ends have two addresses,
// as between machines.
func TestConnectionsFromElsewhereAreUsual(t *testing.T) {
	require.NotEmpty(t, usual())
	at := netip.MustParseAddr("127.0.0.2")
	listener, port, err := listen(at)
	require.NoError(t, err)
	defer unix.Close(listener)
	dialed, err := dial(netip.AddrPortFrom(at, port), "")
	require.NoError(t, err)
	defer unix.Close(dialed)
	require.Equal(t, usual(), congestionControl(t, dialed))

	var fd int
	eventually(t, "the connection", func() bool {
		fd, _, err = unix.Accept4(listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		return err == nil
	})
	defer unix.Close(fd)
	require.Equal(t, unpaced, congestionControl(t, fd))
	accepted(fd)
	require.Equal(t, usual(), congestionControl(t, fd))
}
