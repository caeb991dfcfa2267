//go:build linux

package faults

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/tools/hosts"
)

// A site makes hosts and networks for a job: the rendezvous' host is the last one.
type site struct {
	name  string
	build func(t *testing.T) (*hosts.Testbed, *hosts.Network) // and the network that all share
	env   []string
	meets hosts.Family // of the rendezvous' address
}

// sites are networks over which every operation must work.
var sites = []site{
	{name: "IPv4 and IPv6", build: star, meets: hosts.IPv6},
	{name: "IPv6 only", build: sixOnly, meets: hosts.IPv6},
	{name: "interface by name", build: star, env: []string{"GRUN_IFACE=eth0"}, meets: hosts.IPv4},
	{name: "subnet of IPv6", build: star, env: []string{"GRUN_IFACE=fd00:231:1::/64"}, meets: hosts.IPv4},
	{name: "second network by subnet", build: twoNetworks, env: []string{"GRUN_IFACE=10.231.2.0/24"}, meets: hosts.IPv4},
	{name: "first networks not shared", build: privateNetworks, meets: hosts.IPv4},
	{name: "same private address everywhere", build: samePrivateAddress, meets: hosts.IPv4},
	{name: "tiny /dev/shm", build: tinyShm, meets: hosts.IPv4},
	{name: "full /dev/shm", build: fullShm, meets: hosts.IPv4},
	{name: "encrypted", build: star, env: []string{"GRUN_TLS=1"}, meets: hosts.IPv6},
}

func star(t *testing.T) (*hosts.Testbed, *hosts.Network) {
	return hosts.Star(t, 1, 4)
}

// joined makes the hosts a, b, c and r of a new testbed by host, and joins them to one network.
func joined(t *testing.T, family hosts.Family, host func(bed *hosts.Testbed, name string) *hosts.Host) (*hosts.Testbed, *hosts.Network) {
	bed := hosts.New(t, 1)
	lan := bed.Network(family)
	for _, name := range []string{"a", "b", "c", "r"} {
		lan.Join(host(bed, name))
	}
	return bed, lan
}

func sixOnly(t *testing.T) (*hosts.Testbed, *hosts.Network) {
	return joined(t, hosts.IPv6, (*hosts.Testbed).Host)
}

// twoNetworks connects all hosts by two networks.
func twoNetworks(t *testing.T) (*hosts.Testbed, *hosts.Network) {
	bed, lan := hosts.Star(t, 1, 4)
	second := bed.Network(hosts.IPv4)
	for _, h := range bed.Hosts() {
		second.Join(h)
	}
	return bed, lan
}

// privateNetworks gives each host a network of its own, whose address comes first, and
// a route to all other networks there, where packets vanish. The second network is
// shared.
func privateNetworks(t *testing.T) (*hosts.Testbed, *hosts.Network) {
	return joined(t, hosts.IPv4, func(bed *hosts.Testbed, name string) *hosts.Host {
		h, nowhere := bed.Host(name), bed.Host(name+"-gateway")
		private := bed.Network(hosts.IPv4)
		private.Join(nowhere)
		private.Join(h)
		_, err := h.Output("ip", "route", "add", "default", "via", private.Addr(nowhere, hosts.IPv4).String())
		require.NoError(t, err)
		return h
	})
}

// samePrivateAddress gives each host a bridge with the same address, as container
// engines do, ahead of the shared network.
func samePrivateAddress(t *testing.T) (*hosts.Testbed, *hosts.Network) {
	return joined(t, hosts.IPv4, func(bed *hosts.Testbed, name string) *hosts.Host {
		h := bed.Host(name)
		for _, args := range [][]string{{"link", "add", "docker0", "type", "dummy"}, {"addr", "add", "172.17.0.1/16", "dev", "docker0"}, {"link", "set", "docker0", "up"}} {
			if _, err := h.Output("ip", args...); err != nil {
				_, err = h.Output("ip", "addr", "add", "172.17.0.1/16", "dev", "lo") // a kernel without dummy
				require.NoError(t, err)
				break
			}
		}
		return h
	})
}

func tinyShm(t *testing.T) (*hosts.Testbed, *hosts.Network) {
	return joined(t, hosts.IPv4, func(bed *hosts.Testbed, name string) *hosts.Host { return bed.HostWithShm(name, 4096) })
}

// fullShm leaves no room on /dev/shm.
func fullShm(t *testing.T) (*hosts.Testbed, *hosts.Network) {
	bed, lan := tinyShm(t)
	for _, h := range bed.Hosts() {
		_, err := h.Output("sh", "-c", "head -c 4096 /dev/zero >/dev/shm/full; ! echo more >/dev/shm/more")
		require.NoError(t, err)
	}
	return bed, lan
}

// named returns the hosts with these names.
func named(bed *hosts.Testbed, names ...string) (list []*hosts.Host) {
	for _, name := range names {
		for _, h := range bed.Hosts() {
			if h.Name() == name {
				list = append(list, h)
			}
		}
	}
	return list
}

func TestEveryOperationWorksOnEverySite(t *testing.T) {
	need(t)
	for _, s := range sites {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			bed, lan := s.build(t)
			on := named(bed, "a", "b", "c", "r")
			if len(on) == 3 { // a star names the last one d
				on = named(bed, "a", "b", "c", "d")
			}
			j := start(t, spec{name: "all", place: spread(on, 2, 1, 3), meet: on[3], lan: lan, family: s.meets,
				env: append([]string{"GRUN_STATS=1"}, s.env...)})
			j.ready()
			j.succeeds()
			j.usesSharedMemoryWithinHosts()
		})
	}
}

func TestUnknownInterfaceNamesThoseOfTheHost(t *testing.T) {
	need(t)
	bed, lan := hosts.Star(t, 1, 2)
	on := bed.Hosts()
	j := start(t, spec{name: "all", place: on, meet: on[0], lan: lan, family: hosts.IPv4, env: []string{"GRUN_IFACE=192.168.77.0/24"}})
	for i, err := range j.wait() {
		require.Error(t, err)
		require.Contains(t, j.ranks[i].text(), lan.Addr(on[i], hosts.IPv4).String(), "the addresses to choose from")
	}
}

// TestRendezvousIsFoundByName gives ranks a host name in place of an address.
func TestRendezvousIsFoundByName(t *testing.T) {
	need(t)
	bed, lan := hosts.Star(t, 1, 2)
	on := bed.Hosts()
	s := spec{name: "all", place: on, meet: on[0], lan: lan, family: hosts.IPv4, meetName: on[0].Name()}
	j := start(t, s)
	require.NotEqual(t, netip.MustParseAddrPort(j.at.Addr().String()).String(), j.addr())
	j.ready()
	j.succeeds()
}
