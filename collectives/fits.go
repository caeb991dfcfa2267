package collectives

import (
	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/team"
)

// cannot returns why a way cannot do a call, "" if it can. board says whether the members
// have a board for the call.
func (c *Call) cannot(w *way, of topology, board bool) string {
	switch {
	case !w.board:
		return c.fits(w, of)
	case !board:
		return "the members do not use each other's memory for it"
	}
	return ""
}

// usable returns the names of the ways that can do a call.
func (c *Call) usable(of topology, board bool) (names []string) {
	for _, name := range namesOf(c.of.family) {
		if w, ok := wayNamed(c.of.family, name); ok && c.cannot(w, of, board) == "" {
			names = append(names, name)
		}
	}
	return names
}

// fits returns why a way cannot do a call, "" if it can. All members find the
// same.
func (c *Call) fits(w *way, of topology) string {
	n := of.n
	reduces := c.combine != nil && n > 1
	switch needs := w.Needs; {
	case reduces && c.ordered && !w.Exact:
		return "it does not combine from left to right"
	case reduces && !c.commutes && needs&message.Commuting != 0:
		return "its operator must commute"
	case needs&message.EvenSize != 0 && n%2 != 0 && n > 1:
		return "it needs an even number of members"
	case needs&message.EqualBlocks != 0 && (c.of.is(varied) || of.uneven):
		return "it needs blocks of one length"
	case needs&message.EveryCount != 0 && c.count == team.Varied:
		return "all members must know all counts"
	case needs&message.PackedBlocks != 0 && (c.sendBlocks.Offsets != nil || c.recvBlocks.Offsets != nil):
		return "it needs blocks that follow one another"
	case needs&message.HostMap != 0 && of.hosts < 2:
		return "it is for members on several hosts"
	case needs&message.HostMap != 0 && !of.shared:
		return "no two members share a host"
	case needs&message.HostRuns != 0 && !of.runs:
		return "it needs hosts whose members follow one another"
	case needs&message.OrderedHosts != 0 && reduces && !c.commutes && !of.runs:
		return "its operator must commute, or the members of each host follow one another"
	}
	return ""
}

// bytes returns the length of a call's longest buffer if all members know it, else 0.
func (c *Call) bytes(n int) int {
	switch {
	case c.count == team.Varied:
		return 0
	case c.of.is(varied) || c.of.edges != nil || c.of.buffers != gathers && c.of.buffers != scatters:
		return c.count * c.size
	}
	return n * c.count * c.size
}

// namesOf returns the names of all algorithms of a collective, boards first.
func namesOf(c message.Collective) []string {
	names := []string{onBoard, stagedOnBoard}
	for _, al := range message.Algorithms(c) {
		names = append(names, al.Name)
	}
	return names
}
