package collectives

import (
	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/fabric"
)

// cannot returns why a way cannot do a call of members that have boards or none, ""
// if it can.
func (c *Call) cannot(w *way, of crew, board bool) string {
	switch {
	case !w.board:
		return c.fits(w, of)
	case !board:
		return "the members do not use each other's memory for it"
	}
	return ""
}

// usable returns the names of the ways that can do a call.
func (c *Call) usable(of crew, board bool) (names []string) {
	for _, name := range namesOf(c.family()) {
		if w, ok := wayNamed(c.family(), name); ok && c.cannot(w, of, board) == "" {
			names = append(names, name)
		}
	}
	return names
}

// fits returns why a way cannot do a call, "" if it can. All members find the
// same.
func (c *Call) fits(w *way, of crew) string {
	n := of.n
	reduces := c.combine != nil && n > 1
	switch needs := w.Needs; {
	case reduces && c.ordered && !w.Exact:
		return "it does not combine from left to right"
	case reduces && !c.commutes && needs&message.Commuting != 0:
		return "its operator must commute"
	case needs&message.EvenSize != 0 && n%2 != 0 && n > 1:
		return "it needs an even number of members"
	case needs&message.EqualBlocks != 0 && (c.vary || of.uneven):
		return "it needs blocks of one length"
	case needs&message.EveryCount != 0 && c.count == fabric.Varied:
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

// family returns the collective whose algorithms do a call.
func (c *Call) family() message.Collective {
	switch c.kind {
	case fabric.Broadcast:
		return message.Broadcast
	case fabric.Reduce:
		return message.Reduce
	case fabric.AllReduce:
		return message.AllReduce
	case fabric.Gather, fabric.GatherV:
		return message.Gather
	case fabric.Scatter, fabric.ScatterV:
		return message.Scatter
	case fabric.AllGather, fabric.AllGatherV:
		return message.AllGather
	case fabric.ReduceScatter, fabric.ReduceScatterV:
		return message.ReduceScatter
	case fabric.AllToAll, fabric.AllToAllV:
		return message.AllToAll
	case fabric.Scan:
		return message.Scan
	case fabric.ExScan:
		return message.ExScan
	case fabric.NeighborAllGather, fabric.NeighborAllGatherV:
		return message.NeighbourAllGather
	}
	return message.NeighbourAllToAll
}

// bytes returns the length of a call's longest buffer as all members know it, 0
// where they do not.
func (c *Call) bytes(n int) int {
	switch {
	case c.count == fabric.Varied:
		return 0
	case c.vary:
		return c.count * c.size
	}
	switch c.kind {
	case fabric.Gather, fabric.AllGather, fabric.Scatter, fabric.ReduceScatter:
		return n * c.count * c.size
	}
	return c.count * c.size
}

func namesOf(c message.Collective) []string {
	names := []string{onBoard, stagedOnBoard}
	for _, al := range message.Algorithms(c) {
		names = append(names, al.Name)
	}
	return names
}
