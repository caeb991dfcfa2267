package message

import "context"

// NeighborAllGatherHops: each member sends its block along every edge out and
// receives a block from every edge in. It takes the nearest members first, or all
// at the same time.
//
// Cost: as many rounds as a member has hops, and their bytes; more if members
// wait for one another.
func NeighborAllGatherHops(ctx context.Context, c Transport, a *Args) error {
	b := Batch{src: a.Send, spread: true, dst: a.Recv, in: a.gathered(), graph: a.Neighbors, rank: c.Rank(), n: c.Size()}
	b.loop()
	return c.ExchangeAll(ctx, b)
}
