//go:build linux

package tcp

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, s := range texts {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}

func TestListenNamesAnInterfaceASubnetOrAnAddress(t *testing.T) {
	have := []nic{
		{"lo", prefixes("127.0.0.1/8", "::1/128")},
		{"eth0", prefixes("192.0.2.2/24", "fd00::2/64")},
		{"ib0", prefixes("10.1.2.3/16")},
		{"eth1", prefixes("2001:db8::7/64")},
	}
	for want, address := range map[string]string{
		"lo": "127.0.0.1", "eth0": "192.0.2.2", "ib0": "10.1.2.3", "eth1": "2001:db8::7",
		"10.1.0.0/16": "10.1.2.3", "10.0.0.0/8": "10.1.2.3", "10.1.9.9/16": "10.1.2.3", "0.0.0.0/0": "127.0.0.1",
		"fd00::/64": "fd00::2", "2001:db8::/32": "2001:db8::7", "::1/128": "::1", "127.0.0.0/8": "127.0.0.1",
		"127.0.0.2": "127.0.0.2", "fd00::2": "fd00::2", "::ffff:10.1.2.3": "10.1.2.3",
	} {
		got, err := choose(want, have)
		require.NoError(t, err, want)
		require.Equal(t, netip.MustParseAddr(address), got, want)
	}
	for _, want := range []string{"eth7", "et", "10.2.0.0/16", "fd01::/64", "10.1.0.0/33", " "} {
		_, err := choose(want, have)
		var none *InterfaceError
		require.ErrorAs(t, err, &none)
		require.ErrorIs(t, err, driver.ErrInvalid)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "eth0 192.0.2.2/24 fd00::2/64, ib0 10.1.2.3/16")
	}
}

func TestDeviceListensAtConfiguredAddress(t *testing.T) {
	wants := map[string]netip.Addr{
		"127.0.0.2": netip.MustParseAddr("127.0.0.2"),
		"127.0.0.1": netip.MustParseAddr("127.0.0.1"),
	}
	have, err := nics()
	require.NoError(t, err)
	for _, n := range have {
		wants[n.name] = n.addrs[0].Addr()
		for _, a := range n.addrs {
			wants[a.Addr().String()+"/"+map[bool]string{true: "32", false: "128"}[a.Addr().Is4()]] = a.Addr()
		}
	}
	for want, address := range wants {
		cfg := Config{Listen: want, PeerTimeout: DefaultPeerTimeout}
		a, b := newNodeWith(t, cfg, 64, driver.AllAccess), newNodeWith(t, cfg, 64, driver.AllAccess)
		require.Equal(t, address, listensAt(t, a), want)
		require.Len(t, a.endpoints, 1)
		require.Equal(t, address, a.endpoints[0].Addr())
		qa, qb := a.newQP(4), b.newQP(4)
		connect(t, qa, qb.Address())
		connect(t, qb, qa.Address())
		works(t, a, b, qa)
	}
}

// TestAddressNeedsNoListOfInterfaces counts allocations: a list of interfaces takes system calls, and makes dozens.
func TestAddressNeedsNoListOfInterfaces(t *testing.T) {
	p := provider{Config{Listen: "127.0.0.1"}}
	addrs, err := p.addresses()
	require.NoError(t, err)
	require.Equal(t, []netip.Addr{netip.MustParseAddr("127.0.0.1")}, addrs)
	list := testing.AllocsPerRun(10, func() { _, _ = nics() })
	require.Less(t, testing.AllocsPerRun(10, func() { _, _ = p.addresses() }), list/2)
}

// listensAt returns the address of a device's listening socket.
func listensAt(t *testing.T, n *node) netip.Addr {
	sa, err := unix.Getsockname(n.listener)
	require.NoError(t, err)
	return endpointOf(sa).Addr()
}

func TestForeignAddressErrorListsInterfaces(t *testing.T) {
	for _, want := range []string{"203.0.113.77", "no-such-interface", "203.0.113.0/24"} {
		_, err := New(Config{Listen: want}).Open(t.Context(), "", driver.Options{})
		var none *InterfaceError
		require.ErrorAs(t, err, &none)
		require.Equal(t, want, none.Want)
		require.ErrorContains(t, err, "lo 127.0.0.1/8")
	}
}

func TestEndpointsOfSharedSubnetsComeFirst(t *testing.T) {
	have := []nic{{"eth0", []netip.Prefix{netip.MustParsePrefix("10.1.0.7/16")}}, {"eth1", []netip.Prefix{netip.MustParsePrefix("fd00::7/64")}}}
	ends := func(list ...string) (ends []netip.AddrPort) {
		for _, e := range list {
			ends = append(ends, netip.MustParseAddrPort(e))
		}
		return ends
	}
	given := ends("172.17.0.1:5", "10.2.0.1:5", "10.1.0.1:5", "[fd00::1]:5")
	require.Equal(t, ends("10.1.0.1:5", "[fd00::1]:5", "172.17.0.1:5", "10.2.0.1:5"), nearFirst(given, have))
	require.Equal(t, given, nearFirst(given, nil))
}
