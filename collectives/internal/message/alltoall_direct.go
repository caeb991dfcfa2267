package message

import "context"

// AllToAllDirect: each member exchanges blocks with all other members at the same
// time.
//
//	0 --> 1, 2, 3     1 --> 0, 2, 3     ...     all at the same time
//
// A member waits once, for any n: it serves members that share cores, and networks
// that carry many messages at a time.
//
// Cost: n-1 rounds, m(n-1)/n bytes.
//
// (The "scattered destination" algorithm without its batches: Thakur, Rabenseifner and
// Gropp, "Optimization of Collective Communication Operations in MPICH", 2005)
func AllToAllDirect(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	out, in := a.toAll(n)
	a.copyTo(c, in.of(a.Recv, rank), out.of(a.Send, rank))
	return c.ExchangeAll(ctx, Batch{src: a.Send, dst: a.Recv, out: out, in: in, rank: rank, n: n})
}
