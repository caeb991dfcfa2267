package message

import "context"

// BroadcastTwoLevel: the root, which leads its host, broadcasts to the leaders of
// all hosts, and each leader to its host.
//
//	0 --> 3, 0 --> 5        then   0 --> 1 2    3 --> 4    5 --> 6
//
// Cost: that of Among for the hosts and then that of Within for the largest.
//
// (Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting
// Hierarchy in Parallel Computer Networks to Optimize Collective Operation
// Performance", 2000.)
func BroadcastTwoLevel(ctx context.Context, c Transport, a *Args) error {
	h := a.Hosts
	leader := h.enter(c, a.Root)
	return h.broadcast(ctx, a, leader, h.of[a.Root])
}

// broadcast sends a.Recv of the leader of host first to all members.
func (h *Hosts) broadcast(ctx context.Context, a *Args, leader, first int) error {
	if h.leads() {
		if err := h.Among(Broadcast)(ctx, &h.leading, h.part(a, first, nil, a.Recv)); err != nil {
			return err
		}
	}
	return h.Within(Broadcast)(ctx, &h.local, h.part(a, leader, nil, a.Recv))
}
