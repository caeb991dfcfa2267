package message

import "context"

// GatherTwoLevel: each host gathers at its leader. The leaders send their hosts'
// blocks to the root, which leads its own host, in one message each.
//
//	member    0   1   2    3   4       root 0
//	host      a   a   a    b   b
//	gathered  012          34
//	leaders   01234   <--  34
//
// Needs blocks of one length. Leaders take scratch memory for their host's
// blocks. The root takes some for all blocks if the members of a host do not
// follow one another.
//
// Cost: that of Within for the largest host and then that of Among for the hosts.
// Between H hosts it has H-1 rounds at most, and the bytes of the blocks of all
// hosts but the root's.
//
// (Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting
// Hierarchy in Parallel Computer Networks to Optimize Collective Operation
// Performance", 2000.)
func GatherTwoLevel(ctx context.Context, c Transport, a *Args) error {
	h, b := a.Hosts, a.gathered()
	leader := h.enter(c, a.Root)
	all, host := h.room(c, a, b, a.Send, a.Recv)
	if err := h.Within(Gather)(ctx, &h.local, h.part(a, leader, a.Send, host)); err != nil || !h.leads() {
		return err
	}
	among := h.part(a, h.of[a.Root], host, all)
	among.RecvCounts, among.RecvOffsets = h.counts, h.offsets
	if err := h.Among(Gather)(ctx, &h.leading, among); err != nil {
		return err
	}
	if c.Rank() == a.Root && !h.runs {
		h.toMembers(a.Recv, all, b)
	}
	return nil
}

// room returns the leaders' memory for the blocks of Gather or Scatter, in the
// order of hosts. At the root it is for all of them, in buf if buf has that
// order. At each leader it is for its host's, in one if that is this member's own
// block. Members that lead no host get neither.
func (h *Hosts) room(c Transport, a *Args, b blocks, one, buf []byte) (all, host []byte) {
	h.layOut(b)
	switch mine := h.of[c.Rank()]; {
	case !h.leads():
		return nil, nil
	case c.Rank() != a.Root && h.alone():
		return nil, one
	case c.Rank() != a.Root:
		return nil, a.Scratch(h.counts[mine])
	case h.runs:
		return buf, h.own(buf)
	}
	all = a.Scratch(len(buf))
	return all, h.own(all)
}
