package message

import "context"

// AllGatherDirect: each member gives its block to all others at once.
//
//	0 --> 1, 2, 3     1 --> 0, 2, 3     ...     all at the same time
//
// A member waits once, however many there are, and what it sends is always the same: for
// members that share cores.
//
// Cost: n-1 rounds, m(n-1)/n bytes.
func AllGatherDirect(ctx context.Context, c Carrier, a *Args) error {
	n, rank := c.Size(), c.Rank()
	b := a.gathered()
	own := b.of(a.Recv, rank)
	a.copyTo(c, own, a.Send)
	return c.ExchangeAll(ctx, Batch{src: own, spread: true, dst: a.Recv, in: b, rank: rank, n: n})
}
