package catalog

import (
	"cmp"
	"slices"
)

// A Match is an offer that satisfies the rules, and its distance from all clients together.
type Match struct {
	Offer    *Published
	Distance int
	Way      Way // the longest of the ways
}

// Distances where no steps between PCI devices are counted.
const (
	toHost = 100  // memory of the host
	toNode = 100  // more, on another NUMA node
	toPeer = 1000 // another host
)

// Find lists the offers of n bytes or more that satisfy the rules for all clients. A client is the
// address of a PCI device of this host. The nearest is first, and of equally near ones that of the lowest
// rank. It does not look at the ranges that are handed out. Kind: local.
func (c *Catalog) Find(n int, rules Rules, clients ...string) []Match {
	var found []Match
	for i := range c.offers {
		o := &c.offers[i]
		if o.Size < n || len(rules.Kinds) > 0 && !slices.Contains(rules.Kinds, o.Kind) {
			continue
		}
		m := c.match(o, clients)
		if within(m.Way, rules.Farthest) && within(m.Way, o.Rules.Farthest) {
			found = append(found, m)
		}
	}
	slices.SortStableFunc(found, func(a, b Match) int { return cmp.Compare(a.Distance, b.Distance) })
	return found
}

func within(way, farthest Way) bool { return farthest == Anyhow || way <= farthest }

// match measures an offer. Without clients, this rank's CPU is the client.
func (c *Catalog) match(o *Published, clients []string) Match {
	m := Match{Offer: o, Way: Itself}
	if len(clients) == 0 {
		clients = []string{""}
	}
	for _, client := range clients {
		steps, way := c.distance(o, client)
		m.Distance, m.Way = m.Distance+steps, max(m.Way, way)
	}
	return m
}

// distance measures an offer from one client. A device that the topology does not have is Unknown.
func (c *Catalog) distance(o *Published, client string) (steps int, way Way) {
	switch {
	case o.Host != c.hostOf(c.team.Rank()):
		return toPeer, Network
	case o.Device != "" && client != "":
		steps, way, err := c.topo.Distance(o.Device, client)
		if err != nil {
			return toPeer, Unknown
		}
		return steps, way
	}
	if node := c.topo.Node(client); client != "" && node >= 0 && o.Node >= 0 && node != o.Node {
		return toHost + toNode, HostBridge
	}
	return toHost, HostBridge
}
