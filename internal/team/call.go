package team

import "fmt"

// A Collective names a call that all ranks of a team make together. The calls
// carry it, so that ranks which make different ones find out.
type Collective uint8

const (
	Barrier Collective = iota + 1
	Fence
	Exchange
	Split
	Allocate
	Free
	FreeTeam
	Close
	Broadcast
	Reduce
	AllReduce
	Gather
	GatherV
	AllGather
	AllGatherV
	Scatter
	ScatterV
	ReduceScatter
	ReduceScatterV
	AllToAll
	AllToAllV
	Scan
	ExScan
	NeighborAllGather
	NeighborAllGatherV
	NeighborAllToAll
	NeighborAllToAllV
)

var collectiveNames = [...]string{"nothing", "Barrier", "Fence", "Exchange", "Split", "Allocate", "Free", "Team.Free", "Close",
	"Broadcast", "Reduce", "AllReduce", "Gather", "GatherV", "AllGather", "AllGatherV", "Scatter", "ScatterV",
	"ReduceScatter", "ReduceScatterV", "AllToAll", "AllToAllV", "Scan", "ExScan",
	"NeighborAllGather", "NeighborAllGatherV", "NeighborAllToAll", "NeighborAllToAllV"}

func (c Collective) String() string {
	if int(c) < len(collectiveNames) {
		return collectiveNames[c]
	}
	return "unknown collective"
}

// rooted tells that one member is another part of the call than the others.
func (c Collective) rooted() bool {
	switch c {
	case Broadcast, Reduce, Gather, GatherV, Scatter, ScatterV:
		return true
	}
	return false
}

// Varied is the count of a call whose members give counts of their own.
const Varied = -1

// A Call describes a collective call by what all members of a team must agree on. Two
// are the same if they are equal.
type Call struct {
	Kind  Collective
	Root  int    // by team rank, where there is one
	Count int    // elements, or Varied
	Of    string // type, operator and options, where there are any
	Hash  uint64 // of the above
}

func (c Call) String() string {
	s := c.Kind.String()
	switch {
	case c.Of == "":
		return s
	case c.Count == Varied:
		s += " of " + c.Of
	default:
		s += fmt.Sprintf(" of %d %s", c.Count, c.Of)
	}
	if c.Kind == AllGatherV || c.Kind == ReduceScatterV { // counts may differ even if their sum does not
		s += fmt.Sprintf(", blocks #%04x", c.Hash&0xffff)
	}
	if c.Kind.rooted() {
		s += fmt.Sprintf(", root %d", c.Root)
	}
	return s
}
