package message

import (
	"errors"
	"fmt"
)

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

// Reduces reports whether the collective combines.
func (c Collective) Reduces() bool {
	return c == Reduce || c == AllReduce || c == ReduceScatter || c == Scan || c == ExScan
}

// Needs are what an algorithm cannot do without.
type Needs uint8

// The needs of algorithms.
const (
	Commuting    Needs = 1 << iota // an operator that commutes
	EvenSize                       // an even number of members, or one
	EqualBlocks                    // blocks of one length
	PackedBlocks                   // blocks that follow one another in the members' order
	EveryCount                     // the counts of all blocks at all members
	HostMap                        // to know who shares a host
	HostRuns                       // hosts whose members follow one another
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

// ErrUnfit: an algorithm cannot do the call.
var ErrUnfit = errors.New("algorithm does not fit the call")

// Fits returns nil if the algorithm can do the call of n members that a
// describes, and an ErrUnfit that says why not. It looks at lengths, counts and
// options only, which are the same at all members, so that all get the same
// answer; but a Gather's and Scatter's counts are to be those of the root.
func (al *Algorithm) Fits(n int, a *Args) error {
	why := ""
	reduces := al.Collective.Reduces()
	switch {
	case reduces && a.Ordered && !al.Exact && n > 1:
		why = "it does not combine from left to right"
	case reduces && !a.Commutative && al.Needs&Commuting != 0 && n > 1:
		why = "it needs an operator that commutes"
	case al.Needs&EvenSize != 0 && n%2 != 0 && n > 1:
		why = fmt.Sprintf("it needs an even number of members, not %d", n)
	case al.Needs&EqualBlocks != 0 && (a.SendCounts != nil || a.RecvCounts != nil):
		why = "it needs blocks of one length"
	case al.Needs&PackedBlocks != 0 && !al.packed(n, a):
		why = "it needs blocks that follow one another"
	case al.Needs&HostMap != 0 && a.Hosts == nil:
		why = "it needs to know who shares a host"
	case al.Needs&HostRuns != 0 && !a.Hosts.Runs(), al.Needs&HostMap != 0 && reduces && !a.Commutative && !a.Hosts.Runs():
		why = "it needs hosts whose members follow one another"
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: %s %q: %s", ErrUnfit, al.Collective, al.Name, why)
}

// packed: the blocks of the call follow one another.
func (al *Algorithm) packed(n int, a *Args) bool {
	if al.Collective == Scatter {
		return a.scattered().packed(n)
	}
	return a.gathered().packed(n)
}
