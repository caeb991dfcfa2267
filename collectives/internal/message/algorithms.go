package message

import (
	"fmt"
	"slices"
)

// A Collective is a kind of collective call.
type Collective uint8

// The collectives of this package.
const (
	Broadcast Collective = iota
	Reduce
	AllReduce
	Gather
	Scatter
	AllGather
	ReduceScatter
	AllToAll
	Scan
	ExScan
	NeighborAllGather
	NeighborAllToAll
)

var names = [...]string{"broadcast", "reduce", "all-reduce", "gather", "scatter", "all-gather", "reduce-scatter",
	"all-to-all", "scan", "exscan", "neighbor all-gather", "neighbor all-to-all"}

// Named returns the collective of a name.
func Named(name string) (c Collective, ok bool) {
	i := slices.Index(names[:], name)
	return Collective(max(i, 0)), i >= 0
}

// String returns the collective's name.
func (c Collective) String() string {
	if int(c) >= len(names) {
		return fmt.Sprintf("collective %d", uint8(c))
	}
	return names[c]
}

// Needs are the preconditions of an algorithm. They must hold at all members, or
// at none.
type Needs uint8

// The needs of algorithms.
const (
	Commuting    Needs = 1 << iota // an operator that commutes
	EvenSize                       // an even number of members, or one
	EqualBlocks                    // blocks of one length
	PackedBlocks                   // blocks that follow one another in the members' order, from 0 on
	EveryCount                     // the counts of all blocks at all members
	HostMap                        // the list of members on each host
	HostRuns                       // hosts with members that follow one another (Hosts.Runs)
	OrderedHosts                   // HostRuns, if the operator does not commute
)

// An Algorithm is a way to do a collective, as data to choose from.
type Algorithm struct {
	Collective Collective
	Name       string
	Run        Func
	Needs      Needs
	Exact      bool // can combine in the order of Args.Ordered
	// Cost returns the cost of a call with n members and m bytes, in segments of
	// seg if the algorithm has segments. It is exact if all parts divide evenly,
	// the root is member 0 and the operator commutes. It is nil for algorithms
	// made of others, and for neighbors.
	Cost func(n, m, seg int) Cost
}

// Cost is the length of the longest path of messages: see the package's
// documentation.
type Cost struct{ Rounds, Bytes int }

// Algorithms returns the algorithms of a collective.
func Algorithms(c Collective) []Algorithm {
	var all []Algorithm
	for _, al := range table {
		if al.Collective == c {
			all = append(all, al)
		}
	}
	return all
}

// Find returns a collective's algorithm of that name.
func Find(c Collective, name string) (Algorithm, bool) {
	for _, al := range table {
		if al.Collective == c && al.Name == name {
			return al, true
		}
	}
	return Algorithm{}, false
}
