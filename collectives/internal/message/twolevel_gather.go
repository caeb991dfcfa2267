package message

import "context"

// GatherTwoLevel: each host gathers at its leader, and the leaders send their
// hosts' blocks to the root, which leads its own, in one message each.
//
//	member    0   1   2    3   4       root 0
//	host      a   a   a    b   b
//	gathered  012          34
//	leaders   01234   <--  34
//
// Needs blocks of one length. Leaders take scratch memory for their host's
// blocks; the root takes some for all, if the members of a host do not follow one
// another.
//
// Cost: that of Within for the largest host and then that of Among for the
// hosts: H-1 rounds at most between H hosts, and the bytes of the other hosts'
// blocks.
//
// (Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting
// Hierarchy in Parallel Computer Networks to Optimize Collective Operation
// Performance", 2000.)
func GatherTwoLevel(ctx context.Context, c Carrier, a *Args) error {
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

// room returns where leaders have the blocks of Gather or Scatter, in the order
// of hosts: at the root all of them, in buf if they lie there so, and at each
// leader its host's, in one if that is this member's own block. The others have
// neither.
func (h *Hosts) room(c Carrier, a *Args, b blocks, one, buf []byte) (all, host []byte) {
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
