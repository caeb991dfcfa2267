package team

import "fmt"

// A Collective names a collective call of runtime or window. Its members meet at the
// team's barrier. Package collectives has a table of its own calls.
type Collective uint8

// These collectives meet at the barrier.
const (
	Barrier Collective = iota + 1
	Fence
	Exchange
	Split
	Allocate
	Free
	FreeTeam
	Close
)

var collectiveNames = [...]string{"nothing", "Barrier", "Fence", "Exchange", "Split", "Allocate", "Free", "Team.Free", "Close"}

func (c Collective) String() string {
	if int(c) < len(collectiveNames) {
		return collectiveNames[c]
	}
	return "unknown collective"
}

// Call describes the collective to the team's stream.
func (c Collective) Call() Call { return Call{Name: c.String(), Root: NoRoot, Hash: uint64(c)} }

const (
	// Varied is the count of a call in which members give counts of their own.
	Varied = -1
	// NoRoot is the root of a call in which all members do the same.
	NoRoot = -1
)

// A Call describes a collective call by the arguments on which all members must agree.
// Two calls are the same if their descriptions are equal.
type Call struct {
	Name   string // of the collective
	Root   int    // by team rank, or NoRoot
	Count  int    // elements, or Varied
	Of     string // type, operator and options, where there are any
	Blocks uint64 // a hash of the counts of all members' blocks where all know them, or 0
	Hash   uint64 // of the above
}

// String describes the call in the errors of members that made different ones.
func (c Call) String() string {
	s := c.Name
	switch {
	case c.Of == "":
		return s
	case c.Count == Varied:
		s += " of " + c.Of
	default:
		s += fmt.Sprintf(" of %d %s", c.Count, c.Of)
	}
	if c.Blocks != 0 { // counts may differ even if their sum does not
		s += fmt.Sprintf(", blocks #%04x", c.Blocks&0xffff)
	}
	if c.Root != NoRoot {
		s += fmt.Sprintf(", root %d", c.Root)
	}
	return s
}
