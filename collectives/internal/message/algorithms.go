package message

import "fmt"

// A Collective is what a call does.
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
	NeighbourAllGather
	NeighbourAllToAll
)

// String returns the collective's name.
func (c Collective) String() string {
	names := [...]string{"broadcast", "reduce", "all-reduce", "gather", "scatter", "all-gather", "reduce-scatter",
		"all-to-all", "scan", "exscan", "neighbour all-gather", "neighbour all-to-all"}
	if int(c) >= len(names) {
		return fmt.Sprintf("collective %d", uint8(c))
	}
	return names[c]
}

// Needs are what an algorithm cannot do without. All members must find them met,
// or none.
type Needs uint8

// The needs of algorithms.
const (
	Commuting    Needs = 1 << iota // an operator that commutes
	EvenSize                       // an even number of members, or one
	EqualBlocks                    // blocks of one length
	PackedBlocks                   // blocks that follow one another in the members' order, from 0 on
	EveryCount                     // the counts of all blocks at all members
	HostMap                        // to know who shares a host
	HostRuns                       // hosts whose members follow one another (Hosts.Runs)
	OrderedHosts                   // HostRuns, where the operator does not commute
)

// An Algorithm is a way to do a collective, as data to choose from.
type Algorithm struct {
	Collective Collective
	Name       string
	Run        Func
	Needs      Needs
	Exact      bool // can combine as Args.Ordered asks
	// Cost is what a call with n members and m bytes costs, in segments of seg
	// where it has such: exactly, if what it cuts can be cut evenly, if the root
	// is member 0 and the operator commutes. It is nil for algorithms that are
	// made of others, and for neighbours.
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
