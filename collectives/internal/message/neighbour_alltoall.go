package message

import "context"

// NeighbourAllToAllHops: each member sends a block of its own along every edge out
// and takes a block from every edge in, the nearest members first.
//
// Cost: as many rounds as a member has hops, and their bytes; more where
// members wait for one another.
func NeighbourAllToAllHops(ctx context.Context, c Carrier, a *Args) error {
	g := a.Neighbours
	out := alike(len(a.Send)/max(g.outs, 1), a.SendCounts, a.SendOffsets)
	in := alike(len(a.Recv)/max(g.ins, 1), a.RecvCounts, a.RecvOffsets)
	for _, h := range g.hops {
		var src, dst []byte
		if h.out.member != none {
			src = out.of(a.Send, h.out.place)
		}
		if h.in.member != none {
			dst = in.of(a.Recv, h.in.place)
		}
		if err := h.follow(ctx, c, src, dst); err != nil {
			return err
		}
	}
	return nil
}
