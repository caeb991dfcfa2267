package message

import "context"

// AllGatherDirect: each member sends its block to all other members at the same
// time.
//
//	0 --> 1, 2, 3     1 --> 0, 2, 3     ...     all at the same time
//
// A member waits once, for any n, and always sends the same block: it serves members
// that share cores.
//
// Cost: n-1 rounds, m(n-1)/n bytes.
func AllGatherDirect(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	b := a.gathered()
	own := b.of(a.Recv, rank)
	a.copyTo(c, own, a.Send)
	return c.ExchangeAll(ctx, Batch{src: own, spread: true, dst: a.Recv, in: b, rank: rank, n: n})
}
