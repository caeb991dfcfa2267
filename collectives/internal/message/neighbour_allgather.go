package message

import "context"

// NeighbourAllGatherHops: each member sends its block along every edge out and
// takes a block from every edge in, the nearest members first.
//
// Cost: as many rounds as a member has hops, and their bytes; more where
// members wait for one another.
func NeighbourAllGatherHops(ctx context.Context, c Carrier, a *Args) error {
	b := a.gathered()
	for _, h := range a.Neighbours.hops {
		var dst []byte
		if h.in.member != none {
			dst = b.of(a.Recv, h.in.place)
		}
		if err := h.follow(ctx, c, a.Send, dst); err != nil {
			return err
		}
	}
	return nil
}

// follow sends src along the edge out and fills dst from the edge in.
func (h hop) follow(ctx context.Context, c Carrier, src, dst []byte) error {
	if h.in.member == c.Rank() || h.out.member == c.Rank() { // a loop, so both are
		copy(dst, src)
		return nil
	}
	return exchange(ctx, c, h.out.member, src, h.in.member, dst)
}
