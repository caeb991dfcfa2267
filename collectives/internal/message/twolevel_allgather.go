package message

import "context"

// AllGatherTwoLevel: each host gathers at its leader, the leaders all-gather
// hosts' blocks, and each leader broadcasts all of them to its host.
//
//	member      0   1   2    3   4
//	host        a   a   a    b   b
//	blocks      0   1   2    3   4
//	gathered    012          34
//	leaders     01234        01234
//	broadcast   all of them
//
// Needs hosts with members that follow one another, and blocks that do.
//
// Cost: those of Within for the largest host and that of Among for the hosts.
//
// (Träff, "Efficient Allgather for Regular SMP-Clusters", 2006.)
func AllGatherTwoLevel(ctx context.Context, c Transport, a *Args) error {
	h, b, n := a.Hosts, a.gathered(), c.Size()
	leader := h.enter(c, 0)
	group := h.groups[h.of[c.Rank()]]
	host := b.span(a.Recv, group[0], group[len(group)-1]+1)
	gather := h.part(a, leader, a.Send, host)
	if a.RecvCounts != nil {
		end := group[0] + len(group)
		gather.Recv = a.Recv
		gather.RecvCounts, gather.RecvOffsets = a.RecvCounts[group[0]:end], a.RecvOffsets[group[0]:end]
	}
	if err := h.Within(Gather)(ctx, &h.local, gather); err != nil {
		return err
	}
	if h.leads() {
		h.layOut(b)
		among := h.part(a, 0, host, a.Recv)
		among.RecvCounts, among.RecvOffsets = h.counts, h.offsets
		if err := h.Among(AllGather)(ctx, &h.leading, among); err != nil {
			return err
		}
	}
	all := h.part(a, leader, nil, b.span(a.Recv, 0, n))
	return h.Within(Broadcast)(ctx, &h.local, all)
}
