package message

import "context"

// ReduceTwoLevel: each host reduces to its leader, and the leaders to the root,
// which leads its own host.
//
//	1 2 --> 0    4 --> 3    6 --> 5        then   3 --> 0, 5 --> 0
//
// An operator that does not commute needs hosts with members that follow one
// another.
//
// Cost: that of Within for the largest host and then that of Among for the
// hosts.
//
// (Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting
// Hierarchy in Parallel Computer Networks to Optimize Collective Operation
// Performance", 2000.)
func ReduceTwoLevel(ctx context.Context, c Transport, a *Args) error {
	h := a.Hosts
	leader := h.enter(c, a.Root)
	sum, err := h.reduceWithin(ctx, a, leader, a.Send, a.Recv, c.Rank() == a.Root)
	if err != nil || !h.leads() {
		return err
	}
	return h.Among(Reduce)(ctx, &h.leading, h.part(a, h.of[a.Root], sum, a.Recv))
}

// reduceWithin reduces the send vectors of a host's members to its leader, and
// returns the sum there. The sum lies in into if that is usable, else in scratch
// memory, or in send if the leader is alone.
func (h *Hosts) reduceWithin(ctx context.Context, a *Args, leader int, send, into []byte, usable bool) ([]byte, error) {
	sum := into
	switch {
	case h.alone():
		return send, nil
	case !h.leads():
		sum = nil
	case !usable:
		sum = a.Scratch(len(send))
	}
	return sum, h.Within(Reduce)(ctx, &h.local, h.part(a, leader, send, sum))
}
