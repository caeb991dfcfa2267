//go:build linux

package tcp

import (
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Connections within a machine have no network to protect. Yet the system's congestion
// control may pace, as BBR does: its timers then take the cores from senders and
// receivers. With 8 ranks on 2 cores, an all-to-all of 1 MiB takes 12 ms with pacing,
// and 8 ms without. A socket that has begun to pace never stops. So listeners and
// connections to this machine do not pace. A connection from another machine gets the
// system's congestion control back when it is accepted.

// unpaced is the congestion control within a machine: RFC 5681, which Linux always has.
const unpaced = "reno"

// usual returns the system's own congestion control, which every process may choose, or
// "" if it is unknown.
var usual = sync.OnceValue(func() string {
	fd, err := unix.Socket(unix.AF_INET, socketType, unix.IPPROTO_TCP)
	if err != nil {
		return ""
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was sent
	name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		return ""
	}
	return name
})

// control sets a socket's congestion control. Without it the connection is slower.
func control(fd int, name string) {
	if name != "" {
		unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name) //nolint:errcheck // see above
	}
}

// within reports whether an address is of this machine.
func (d *device) within(a netip.Addr) bool {
	return a.IsLoopback() || slices.ContainsFunc(d.endpoints, func(own netip.AddrPort) bool { return own.Addr().Unmap() == a.Unmap() })
}

// accepted gives a connection from another machine the usual congestion control.
func (d *device) accepted(fd int, from unix.Sockaddr) {
	if !d.within(endpointOf(from).Addr()) {
		control(fd, usual())
	}
}

// endpointOf returns the address and port of a socket, or the zero value.
func endpointOf(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}
