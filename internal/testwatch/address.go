package testwatch

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Address returns an address of this machine with a port at which processes of the test may
// listen, one at a time. A socket is bound to the port and does not listen. So the kernel gives
// the port to no other socket until the test ends for any port. Address skips the test where the
// machine lacks ip.
func Address(t testing.TB, ip string) netip.AddrPort {
	t.Helper()
	at, family := netip.MustParseAddr(ip), unix.AF_INET
	var local unix.Sockaddr
	if at.Is4() {
		local = &unix.SockaddrInet4{Addr: at.As4()}
	} else {
		local, family = &unix.SockaddrInet6{Addr: at.As16()}, unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	unix.CloseOnExec(fd)
	t.Cleanup(func() { _ = unix.Close(fd) })
	require.NoError(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)) // as listeners of Go have it
	if err := unix.Bind(fd, local); err != nil {
		t.Skipf("this machine has no address %s: %v", ip, err)
	}
	local, err = unix.Getsockname(fd)
	require.NoError(t, err)
	if six, ok := local.(*unix.SockaddrInet6); ok {
		return netip.AddrPortFrom(at, uint16(six.Port))
	}
	return netip.AddrPortFrom(at, uint16(local.(*unix.SockaddrInet4).Port))
}
