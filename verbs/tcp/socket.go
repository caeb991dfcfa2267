//go:build linux

package tcp

import (
	"errors"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

const socketType = unix.SOCK_STREAM | unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC

func sockaddr(a netip.AddrPort) (unix.Sockaddr, int) {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}, unix.AF_INET
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}, unix.AF_INET6
}

// listen opens a listening socket on ip and returns its port. The unspecified
// IPv6 address takes IPv4 connections as well.
func listen(ip netip.Addr) (fd int, port uint16, err error) {
	sa, family := sockaddr(netip.AddrPortFrom(ip, 0))
	if fd, err = unix.Socket(family, socketType, unix.IPPROTO_TCP); err != nil {
		return -1, 0, err
	}
	if family == unix.AF_INET6 && ip.IsUnspecified() {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	control(fd, unpaced)
	err = errors.Join(err, unix.Bind(fd, sa), unix.Listen(fd, unix.SOMAXCONN))
	if err == nil {
		port, err = localPort(fd)
	}
	if err != nil {
		unix.Close(fd) //nolint:errcheck // the first error counts
		return -1, 0, err
	}
	return fd, port, nil
}

// localPort returns the port to which a socket is bound.
func localPort(fd int) (uint16, error) {
	sa, err := unix.Getsockname(fd)
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return uint16(sa.Port), err
	case *unix.SockaddrInet6:
		return uint16(sa.Port), err
	}
	return 0, errors.Join(err, unix.EAFNOSUPPORT)
}

// dial starts a connection, with the system's congestion control or the named one; the
// socket becomes writable when the connection is established.
func dial(to netip.AddrPort, congestion string) (fd int, err error) {
	sa, family := sockaddr(to)
	if fd, err = unix.Socket(family, socketType, unix.IPPROTO_TCP); err != nil {
		return -1, err
	}
	control(fd, congestion)
	if err = unix.Connect(fd, sa); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd) //nolint:errcheck // the first error counts
		return -1, err
	}
	return fd, nil
}

// dialSelf returns a socket that is connected to itself: it reads the bytes that it
// writes. TCP calls it a simultaneous open.
func dialSelf() (fd int, err error) {
	sa, family := sockaddr(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0))
	if fd, err = unix.Socket(family, socketType, unix.IPPROTO_TCP); err != nil {
		return -1, err
	}
	control(fd, unpaced)
	if err = unix.Bind(fd, sa); err == nil {
		if sa, err = unix.Getsockname(fd); err == nil {
			err = unix.Connect(fd, sa)
		}
	}
	if err != nil && err != unix.EINPROGRESS {
		unix.Close(fd) //nolint:errcheck // the first error counts
		return -1, err
	}
	return fd, nil
}

// socketError returns the error of a started connection.
func socketError(fd int) error {
	errno, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && errno != 0 {
		err = unix.Errno(errno)
	}
	return err
}

// tune sets the options of an established connection: no delay for small frames, and
// probes that find a vanished host of an idle connection. It does not set
// TCP_USER_TIMEOUT, which would also end a connection to a stopped peer with a shut
// window; see watchdog.
func tune(fd int, timeout time.Duration) error {
	const probes = 3
	interval := max(1, int(timeout/(2*probes)/time.Second))
	return errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, max(1, int(timeout/2/time.Second))),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, interval),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, probes),
	)
}
