package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// keepAlive finds out that the host at the other end of a connection is gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: DefaultSilence / 3, Interval: DefaultSilence / 6, Count: 4}

// errAddress: an address that is none, however often it is tried.
var errAddress = errors.New("want host:port with a port from 1 to 65535")

// resolve returns all addresses of host:port, in one order on every host. Without a
// host it returns those of the loopback interface.
func resolve(ctx context.Context, addr string) ([]netip.AddrPort, error) {
	host, port, err := split(addr)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = "localhost"
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var list []netip.AddrPort
	for _, ip := range found {
		list = append(list, netip.AddrPortFrom(ip.Unmap(), port))
	}
	slices.SortFunc(list, netip.AddrPort.Compare)
	return slices.Compact(list), nil
}

// split parses host:port.
func split(addr string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(addr)
	n, convErr := strconv.ParseUint(text, 10, 16)
	if err != nil || convErr != nil || n == 0 {
		return "", 0, fmt.Errorf("address %q: %w", addr, errAddress)
	}
	return host, uint16(n), nil
}

// An AddressError reports that a process cannot host the rendezvous at an address.
type AddressError struct {
	Addr  string
	Taken bool // another process listens there; else the address is not of this host
	Cause error
}

func (e *AddressError) Error() string {
	if e.Taken {
		return fmt.Sprintf("host the rendezvous at %s: another process listens there, perhaps another job: end it, or choose another port for %s (%v)",
			e.Addr, EnvAddr, e.Cause)
	}
	return fmt.Sprintf("host the rendezvous at %s: the address is not of this host, where rank 0 runs: start rank 0 there, or let %s name this host (%v)",
		e.Addr, EnvAddr, e.Cause)
}

func (e *AddressError) Unwrap() error { return e.Cause }

// errElsewhere: none of the addresses of a name is of this host.
var errElsewhere = errors.New("none of its addresses is of an interface here")

// openListeners opens the listeners of a rendezvous at addr. It fails with *AddressError if
// another process listens there or if the address is of another host.
func openListeners(ctx context.Context, addr string) ([]net.Listener, error) {
	places, err := places(ctx, addr)
	if err != nil {
		return nil, err
	}
	config := net.ListenConfig{KeepAliveConfig: keepAlive}
	config.SetMultipathTCP(false)
	var open []net.Listener
	for _, place := range places {
		l, err := config.Listen(ctx, "tcp", place)
		if err == nil {
			open = append(open, l)
			continue
		}
		// All processes try the first address first, so at most one of them gets it.
		taken := errors.Is(err, syscall.EADDRINUSE)
		if taken && len(open) == 0 {
			return nil, &AddressError{Addr: addr, Taken: true, Cause: err}
		}
		if !taken && !errors.Is(err, syscall.EADDRNOTAVAIL) && !errors.Is(err, syscall.EAFNOSUPPORT) {
			closeAll(open)
			return nil, err
		}
	}
	if len(open) == 0 {
		return nil, &AddressError{Addr: addr, Cause: errElsewhere}
	}
	return open, nil
}

// openAnywhere opens a listener at a free port, and returns the addresses at which other
// ranks may reach it. They are those of all interfaces, or of the loopback interface where
// all ranks are on this host.
func openAnywhere(ctx context.Context, oneHost bool) (net.Listener, []string, error) {
	config := net.ListenConfig{KeepAliveConfig: keepAlive}
	config.SetMultipathTCP(false)
	at := ":0"
	if oneHost {
		at = "localhost:0"
	}
	l, err := config.Listen(ctx, "tcp", at)
	if err != nil {
		return nil, nil, fmt.Errorf("host the rendezvous: %w", err)
	}
	here, ok := l.Addr().(*net.TCPAddr)
	if !ok || oneHost {
		return l, []string{l.Addr().String()}, nil
	}
	var addrs, loopback []string
	for _, p := range prefixes() {
		text := netip.AddrPortFrom(p.Addr(), uint16(here.Port)).String()
		if p.Addr().IsLoopback() {
			loopback = append(loopback, text)
		} else {
			addrs = append(addrs, text)
		}
	}
	if len(addrs) == 0 {
		addrs = loopback
	}
	return l, addrs, nil
}

// prefixes returns the addresses of this host's interfaces with their networks, but none of
// one link only.
func prefixes() (list []netip.Prefix) {
	interfaces, _ := net.InterfaceAddrs() // without them, the order of addresses does not matter
	for _, i := range interfaces {
		p, err := netip.ParsePrefix(i.String())
		if err == nil && !p.Addr().IsLinkLocalUnicast() {
			list = append(list, netip.PrefixFrom(p.Addr().Unmap(), p.Bits()))
		}
	}
	return list
}

// closeAll closes listeners after a failure.
func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

// places returns the addresses at which the host of addr listens. A literal address and
// the empty host stand for themselves. Many hosts resolve their own name to an address
// of the loopback interface, which other hosts cannot reach: for such a name the
// rendezvous listens on every interface.
func places(ctx context.Context, addr string) ([]string, error) {
	host, port, err := split(addr)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return []string{addr}, nil
	}
	all, err := resolve(ctx, addr)
	if err != nil {
		return nil, err
	}
	here, err := own(all)
	if err != nil {
		return nil, err
	}
	if len(here) == 0 {
		return nil, &AddressError{Addr: addr, Cause: errElsewhere}
	}
	outside := func(a netip.AddrPort) bool { return !a.Addr().IsLoopback() }
	if !slices.ContainsFunc(here, outside) && !isLocalhost(host) {
		return []string{net.JoinHostPort("", strconv.Itoa(int(port)))}, nil
	}
	var list []string
	for _, a := range here {
		list = append(list, a.String())
	}
	return list, nil
}

// isLocalhost reports whether a name is one of this host's loopback interface.
func isLocalhost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "ip6-localhost"
}

// own returns those of the addresses that an interface of this host has.
func own(all []netip.AddrPort) (here []netip.AddrPort, err error) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		mine := func(i net.Addr) bool {
			prefix, err := netip.ParsePrefix(i.String())
			return err == nil && prefix.Addr().Unmap() == a.Addr().WithZone("")
		}
		if a.Addr().IsLoopback() || slices.ContainsFunc(interfaces, mine) {
			here = append(here, a)
		}
	}
	return here, nil
}
