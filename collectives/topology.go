package collectives

import (
	"fmt"
	"slices"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/team"
)

// A topology says how many members make a call together, and how they share hosts.
// Algorithms are chosen by it. It is the same at all members.
type topology struct {
	n       int
	hosts   int  // that the members run on
	shared  bool // two members or more share a host
	runs    bool // the members on each host have consecutive ranks
	crowded bool // a host has more members than cores
	uneven  bool // the members lead hosts with different numbers of members
}

// oneHost returns the topology of n members on one host.
func oneHost(n int) topology { return topology{n: n, hosts: 1, shared: n > 1, runs: true} }

// leadersOf returns the topology of the leaders of n hosts.
func leadersOf(n int) topology { return topology{n: n, hosts: n, runs: true} }

// topologyOf returns the topology of a team.
func topologyOf(t *team.Team) topology {
	n := len(t.Members)
	if !slices.ContainsFunc(t.Hosts, func(host int) bool { return host != t.Hosts[0] }) {
		p := oneHost(n)
		p.crowded = t.Crowded()
		return p
	}
	h := message.NewHosts(t.Hosts)
	return topology{n: n, hosts: h.Count(), shared: h.Count() < n, runs: h.Runs(), crowded: t.Crowded()}
}

// matches reports whether the topology meets the condition of a rule.
func (p topology) matches(at where) bool {
	switch at {
	case severalHosts:
		return p.hosts > 1
	case fewHosts:
		return p.shared && p.runs && (p.hosts == 2 || p.hosts == 3)
	case hostEach:
		return p.hosts > 1 && p.hosts == p.n
	case sharedCores:
		return p.crowded
	case sharedByTwos:
		return p.crowded && p.n&(p.n-1) == 0
	}
	return true
}

// hasTwoLevels reports whether a call can use one algorithm among hosts and another within them.
func (p topology) hasTwoLevels() bool { return p.hosts > 1 && p.shared }

// String describes the topology in the explanations of choices.
func (p topology) String() string {
	about := fmt.Sprintf("%d ranks", p.n)
	if p.hosts > 1 {
		about += fmt.Sprintf(" on %d hosts", p.hosts)
	}
	if p.crowded {
		about += " that share cores"
	}
	return about
}
