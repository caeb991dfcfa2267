package message

import "slices"

// Hosts say which members share a host, and hold what the two-level algorithms
// need of one member, so that calls allocate nothing. One goroutine uses it at a
// time.
//
//	member   0   1   2   3   4   5   6
//	host     a   a   a   b   b   c   c
//	leader   *           *       *           the first member, or the root
type Hosts struct {
	// Within and Among are the algorithms inside a host and between leaders.
	// NewHosts sets some for short data, and the caller may set others for each
	// call. Their needs are those of the call; all members have the counts of all
	// blocks, which follow one another.
	Within Within
	Among  Among

	groups [][]int // members by host, in the order of their first members
	of     []int   // member -> index in groups
	runs   bool    // members of a host follow one another

	leaders         []int // by host, in this call
	local, leading  Sub
	args            Args // of the part under way
	counts, offsets []int
}

// Within are the algorithms inside a host.
type Within struct{ Broadcast, Reduce, Gather Func }

// Among are the algorithms between the leaders of hosts.
type Among struct{ Broadcast, Reduce, AllReduce, AllGather Func }

// NewHosts returns the Hosts of members of which member i is on host[i]; any
// numbers will do.
func NewHosts(host []int) *Hosts {
	h := &Hosts{
		Within: Within{BroadcastBinomial, ReduceBinomial, GatherLinear},
		Among:  Among{BroadcastBinomial, ReduceBinomial, AllReduceRecursiveDoubling, AllGatherRing},
		of:     make([]int, len(host)),
		runs:   true,
	}
	var names []int
	for member, name := range host {
		i := slices.Index(names, name)
		if i < 0 {
			i = len(names)
			names, h.groups = append(names, name), append(h.groups, nil)
		} else if i < len(names)-1 {
			h.runs = false
		}
		h.of[member] = i
		h.groups[i] = append(h.groups[i], member)
	}
	h.leaders = make([]int, len(h.groups))
	h.counts, h.offsets = make([]int, len(h.groups)), make([]int, len(h.groups))
	return h
}

// Count returns the number of hosts.
func (h *Hosts) Count() int { return len(h.groups) }

// Runs reports whether the members of every host follow one another.
func (h *Hosts) Runs() bool { return h.runs }

// Beside returns the members that share a member's host, itself among them, in their
// order. Nobody changes the list.
func (h *Hosts) Beside(member int) []int { return h.groups[h.of[member]] }

// enter makes the carriers of a call: root leads its host, the first members
// lead the others. It returns this member's leader in local.
func (h *Hosts) enter(c Carrier, root int) (leader int) {
	for i, group := range h.groups {
		h.leaders[i] = group[0]
	}
	h.leaders[h.of[root]] = root
	mine := h.of[c.Rank()]
	h.local.among(c, h.groups[mine])
	h.leading.among(c, h.leaders)
	return slices.Index(h.groups[mine], h.leaders[mine])
}

// leads: this member is its host's leader.
func (h *Hosts) leads() bool { return h.leading.rank != none }

// part returns a copy of a for a part of the call.
func (h *Hosts) part(a *Args, root int, send, recv []byte) *Args {
	h.args = *a
	h.args.Root, h.args.Send, h.args.Recv, h.args.Hosts = root, send, recv, nil
	return &h.args
}
