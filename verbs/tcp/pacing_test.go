//go:build linux

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

func TestConnectionsWithinMachineDoNotPace(t *testing.T) {
	a, b, qa, qb := pair(t, 64)
	settled(t, a, b, qa)
	for _, q := range []*qp{qa, qb} { // one has dialed, its peer has accepted
		q.lock()
		require.Equal(t, unpaced, congestionControl(t, q.link.fd))
		q.unlock()
	}
}

func TestConnectionsFromOtherMachinesUseSystemControl(t *testing.T) {
	require.NotEmpty(t, usual())
	d := &device{endpoints: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:99")}}
	for from, control := range map[string]string{
		"127.0.0.2": unpaced, "10.0.0.1": unpaced, "::ffff:10.0.0.1": unpaced, "::1": unpaced,
		"10.0.0.2": usual(), "::ffff:10.0.0.2": usual(), "fe80::1": usual(),
	} {
		fd, _, err := listen(netip.MustParseAddr("127.0.0.1")) // accepted sockets inherit its options
		require.NoError(t, err)
		defer unix.Close(fd) //nolint:errcheck // nothing was sent
		require.Equal(t, unpaced, congestionControl(t, fd))
		d.accepted(fd, &unix.SockaddrInet6{Addr: netip.MustParseAddr(from).As16()})
		require.Equal(t, control, congestionControl(t, fd), from)
	}
}
