package message

import "slices"

// Hosts list the members of each host, and hold the memory that the two-level
// algorithms need at one member, so that calls allocate nothing. One goroutine
// uses it at a time.
//
//	member   0   1   2   3   4   5   6
//	host     a   a   a   b   b   c   c
//	leader   *           *       *           the first member, or the root
type Hosts struct {
	// Within and Among return the algorithm for a part of a call inside a host and
	// between leaders. NewHosts sets some for short data; the caller may set
	// others. Their needs are those of the call. All members have the counts of all
	// blocks, which follow one another. Blocks have one length if they do in the
	// call, except those of AllToAll between hosts that are not Even.
	Within, Among func(Collective) Func

	groups [][]int // members by host, in the order of their first members
	of     []int   // member -> index in groups
	runs   bool    // members of a host follow one another

	leaders        []int // by host, in this call
	local, leading Sub
	args           Args  // of the current part
	counts         []int // of blocks, by host
	offsets        []int
	ownCounts      []int // of blocks, by member of this host
	ownOffsets     []int
}

// NewHosts returns the Hosts of members of which member i is on host[i]; any
// numbers will do.
func NewHosts(host []int) *Hosts {
	h := &Hosts{Within: forShort, Among: forShort, of: make([]int, len(host)), runs: true}
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
	h.prepare()
	return h
}

// Clone returns Hosts of the same members for another goroutine. It shares the lists.
func (h *Hosts) Clone() *Hosts {
	c := &Hosts{Within: h.Within, Among: h.Among, groups: h.groups, of: h.of, runs: h.runs}
	c.prepare()
	return c
}

// prepare makes the memory that calls use.
func (h *Hosts) prepare() {
	h.leaders = make([]int, len(h.groups))
	h.counts, h.offsets = make([]int, len(h.groups)), make([]int, len(h.groups))
	most := 0
	for _, group := range h.groups {
		most = max(most, len(group))
	}
	h.ownCounts, h.ownOffsets = make([]int, most), make([]int, most)
}

// forShort returns an algorithm for a part of little data.
func forShort(c Collective) Func {
	return [...]Func{
		Broadcast: BroadcastBinomial, Reduce: ReduceBinomial, AllReduce: AllReduceRecursiveDoubling,
		Gather: GatherLinear, Scatter: ScatterLinear, AllGather: AllGatherRing,
		ReduceScatter: ReduceScatterPairwise, AllToAll: AllToAllPairwise,
		Scan: ScanRecursiveDoubling, ExScan: ExScanRecursiveDoubling,
	}[c]
}

// Count returns the number of hosts.
func (h *Hosts) Count() int { return len(h.groups) }

// Runs reports whether the members of every host follow one another.
func (h *Hosts) Runs() bool { return h.runs }

// Even reports whether all hosts have as many members.
func (h *Hosts) Even() bool {
	return !slices.ContainsFunc(h.groups, func(group []int) bool { return len(group) != len(h.groups[0]) })
}

// Beside returns the members on a member's host, itself among them, in their order.
// The caller must not change the list.
func (h *Hosts) Beside(member int) []int { return h.groups[h.of[member]] }

// enter makes the transports of a call: root leads its host, and the first member
// leads each other host. It returns this member's leader in local.
func (h *Hosts) enter(c Transport, root int) (leader int) {
	for i, group := range h.groups {
		h.leaders[i] = group[0]
	}
	h.leaders[h.of[root]] = root
	return h.split(c)
}

// enterLast is enter with the last members as leaders.
func (h *Hosts) enterLast(c Transport) (leader int) {
	for i, group := range h.groups {
		h.leaders[i] = group[len(group)-1]
	}
	return h.split(c)
}

// split makes the transports of a call whose leaders are known.
func (h *Hosts) split(c Transport) (leader int) {
	mine := h.of[c.Rank()]
	h.local.among(c, h.groups[mine])
	h.leading.among(c, h.leaders)
	return slices.Index(h.groups[mine], h.leaders[mine])
}

// leads reports whether this member is its host's leader.
func (h *Hosts) leads() bool { return h.leading.rank != none }

// alone reports whether this member has its host to itself.
func (h *Hosts) alone() bool { return h.local.Size() == 1 }

// part returns a copy of a for a part of the call, without its blocks.
func (h *Hosts) part(a *Args, root int, send, recv []byte) *Args {
	h.args = *a
	h.args.Root, h.args.Send, h.args.Recv, h.args.Hosts = root, send, recv, nil
	h.args.SendCounts, h.args.SendOffsets, h.args.RecvCounts, h.args.RecvOffsets = nil, nil, nil, nil
	return &h.args
}
