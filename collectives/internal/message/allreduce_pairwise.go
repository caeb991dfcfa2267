package message

import "context"

// AllReducePairwise: ReduceScatterPairwise of shares, then a ring all-gather. It
// serves long vectors if order matters: it moves no more bytes than the ring.
//
// Cost: 2(n-1) rounds, 2m(n-1)/n bytes. Exact.
func AllReducePairwise(ctx context.Context, c Transport, a *Args) error {
	b := shares(len(a.Send), c.Size(), a.Elem)
	if err := reducePairwise(ctx, c, a, b, b.of(a.Recv, c.Rank())); err != nil {
		return err
	}
	return ringAllGather(ctx, c, 0, a.Recv, b)
}
