package message

import "context"

// ScatterTwoLevel: the root, which leads its host, sends each other leader its
// host's blocks in one message, and each leader scatters to its host.
//
//	member     0   1   2    3   4      root 0
//	host       a   a   a    b   b
//	leaders    01234   -->  34
//	scattered  0   1   2    3   4
//
// Needs blocks of one length. Leaders take scratch memory for their host's
// blocks. The root takes some for all blocks if the members of a host do not
// follow one another.
//
// Cost: that of Among for the hosts and then that of Within for the largest.
// Between H hosts it has H-1 rounds at most, and the bytes of the blocks of all
// hosts but the root's.
//
// (Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting
// Hierarchy in Parallel Computer Networks to Optimize Collective Operation
// Performance", 2000.)
func ScatterTwoLevel(ctx context.Context, c Transport, a *Args) error {
	h, b := a.Hosts, a.scattered()
	leader := h.enter(c, a.Root)
	all, host := h.room(c, a, b, a.Recv, a.Send)
	if h.leads() {
		if c.Rank() == a.Root && !h.runs {
			h.toHosts(all, a.Send, b)
		}
		among := h.part(a, h.of[a.Root], all, host)
		among.SendCounts, among.SendOffsets = h.counts, h.offsets
		if err := h.Among(Scatter)(ctx, &h.leading, among); err != nil {
			return err
		}
	}
	return h.Within(Scatter)(ctx, &h.local, h.part(a, leader, host, a.Recv))
}
