package message

// Blocks in the order of hosts: those of a host's members follow one another, as
// do the blocks that two leaders exchange.
//
//	member        0   1   2   3   4          host a: 0 2 3, host b: 1 4
//	by members    0   1   2   3   4
//	by hosts      0   2   3 │ 1   4
//
// If the members of each host follow one another, both orders are the same.

// layOut stores the places of hosts' blocks in that order, in counts and offsets.
func (h *Hosts) layOut(b blocks) {
	at := 0
	for i, group := range h.groups {
		h.offsets[i] = at
		for _, m := range group {
			at += b.size(m)
		}
		h.counts[i] = at - h.offsets[i]
	}
}

// layOutOwn returns the places of the blocks of this host's members among them.
func (h *Hosts) layOutOwn(b blocks) (counts, offsets []int) {
	at := 0
	for i, m := range h.local.members {
		h.ownCounts[i], h.ownOffsets[i] = b.size(m), at
		at += b.size(m)
	}
	n := h.local.Size()
	return h.ownCounts[:n], h.ownOffsets[:n]
}

// own returns this host's blocks, among all in the order of hosts.
func (h *Hosts) own(byHosts []byte) []byte {
	mine := h.of[h.local.members[0]]
	return byHosts[h.offsets[mine]:][:h.counts[mine]]
}

// toHosts copies blocks in the order of members into that of hosts.
func (h *Hosts) toHosts(byHosts, byMembers []byte, b blocks) {
	at := 0
	for _, group := range h.groups {
		for _, m := range group {
			at += copy(byHosts[at:], b.of(byMembers, m))
		}
	}
}

// toMembers copies blocks in the order of hosts into that of members.
func (h *Hosts) toMembers(byMembers, byHosts []byte, b blocks) {
	at := 0
	for _, group := range h.groups {
		for _, m := range group {
			at += copy(b.of(byMembers, m), byHosts[at:])
		}
	}
}
