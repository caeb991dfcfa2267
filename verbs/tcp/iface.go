//go:build linux

package tcp

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/gopgas/gopgas/verbs/driver"
)

// An InterfaceError reports that this host has no address that fits Config.Listen.
// errors.Is finds driver.ErrInvalid.
type InterfaceError struct {
	Want string
	Have []string // each interface that is up, with its addresses
}

func (e *InterfaceError) Error() string {
	return fmt.Sprintf("tcp: this host has no interface or address %q; choose an interface or a subnet of these: %s",
		e.Want, strings.Join(e.Have, ", "))
}

func (e *InterfaceError) Unwrap() error { return driver.ErrInvalid }

// nic is an interface that is up, with the addresses that peers may dial.
type nic struct {
	name  string
	addrs []netip.Prefix
}

func (n nic) String() string {
	s := n.name
	for _, a := range n.addrs {
		s += " " + a.String()
	}
	return s
}

// nics lists this host's interfaces, without link-local addresses.
func nics() ([]nic, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("tcp: listing interfaces: %w", err)
	}
	var up []nic
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue // it may have been removed since
		}
		n := nic{name: i.Name}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLinkLocalUnicast() {
				n.addrs = append(n.addrs, p)
			}
		}
		if n.addrs != nil {
			up = append(up, n)
		}
	}
	return up, nil
}

// choose returns the address that want names: the address itself, or the first one in a
// subnet or of an interface.
func choose(want string, have []nic) (netip.Addr, error) {
	if ip, err := netip.ParseAddr(want); err == nil {
		return ip.Unmap(), nil
	}
	subnet, err := netip.ParsePrefix(want)
	for _, n := range have {
		for _, a := range n.addrs {
			if err == nil && subnet.Contains(a.Addr()) || n.name == want {
				return a.Addr(), nil
			}
		}
	}
	return netip.Addr{}, notHere(want, have)
}

func notHere(want string, have []nic) error {
	e := &InterfaceError{Want: want}
	for _, n := range have {
		e.Have = append(e.Have, n.String())
	}
	return e
}

// reachable lists the addresses at which peers may dial, those of the loopback only if
// the host has no network.
func reachable(have []nic) []netip.Addr {
	var outside, loopback []netip.Addr
	for _, n := range have {
		for _, a := range n.addrs {
			if a.Addr().IsLoopback() {
				loopback = append(loopback, a.Addr())
			} else {
				outside = append(outside, a.Addr())
			}
		}
	}
	if len(outside) == 0 {
		return loopback
	}
	return outside[:min(len(outside), maxEndpoints)]
}

// nearFirst orders a peer's endpoints: those in a subnet of this host come first. An
// address of another network may lead to a host that drops all packets. Precondition:
// the token is held.
func (d *device) nearFirst(endpoints []netip.AddrPort) []netip.AddrPort {
	if len(endpoints) < 2 {
		return endpoints
	}
	if d.nearby == nil {
		d.nearby, _ = nics() // without a list the order stays
	}
	return nearFirst(endpoints, d.nearby)
}

// nearFirst moves the endpoints in subnets of this host's interfaces to the front.
func nearFirst(endpoints []netip.AddrPort, have []nic) []netip.AddrPort {
	var near, far []netip.AddrPort
	for _, e := range endpoints {
		shared := func(p netip.Prefix) bool { return p.Contains(e.Addr()) }
		if slices.ContainsFunc(have, func(n nic) bool { return slices.ContainsFunc(n.addrs, shared) }) {
			near = append(near, e)
		} else {
			far = append(far, e)
		}
	}
	return append(near, far...)
}
