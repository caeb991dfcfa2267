package message

import "context"

// AllReduceTwoLevel: each host reduces to its leader, the leaders all-reduce,
// and each leader broadcasts to its host.
//
//	1 2 --> 0    4 --> 3    6 --> 5
//	0 <-> 3 <-> 5
//	0 --> 1 2    3 --> 4    5 --> 6
//
// Only leaders exchange vectors between hosts. An operator that does not commute
// needs hosts with members that follow one another.
//
// Cost: twice that of Within for the largest host, and that of Among for the
// hosts.
//
// (Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting
// Hierarchy in Parallel Computer Networks to Optimize Collective Operation
// Performance", 2000.)
func AllReduceTwoLevel(ctx context.Context, c Transport, a *Args) error {
	h := a.Hosts
	leader := h.enter(c, 0)
	sum, err := h.reduceWithin(ctx, a, leader, a.Send, a.Recv, true)
	if err != nil {
		return err
	}
	if h.leads() {
		if err := h.Among(AllReduce)(ctx, &h.leading, h.part(a, 0, sum, a.Recv)); err != nil {
			return err
		}
	}
	return h.Within(Broadcast)(ctx, &h.local, h.part(a, leader, nil, a.Recv))
}
