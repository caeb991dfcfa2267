package message

import "context"

// NeighborAllToAllHops: each member sends a block of its own along every edge out
// and receives a block from every edge in. It takes the nearest members first, or
// all at the same time.
//
// Cost: as many rounds as a member has hops, and their bytes; more if members
// wait for one another.
func NeighborAllToAllHops(ctx context.Context, c Transport, a *Args) error {
	g := a.Neighbors
	out := alike(len(a.Send)/max(g.outs, 1), a.SendCounts, a.SendOffsets)
	in := alike(len(a.Recv)/max(g.ins, 1), a.RecvCounts, a.RecvOffsets)
	b := Batch{src: a.Send, out: out, dst: a.Recv, in: in, graph: g, rank: c.Rank(), n: c.Size()}
	b.loop()
	return c.ExchangeAll(ctx, b)
}
