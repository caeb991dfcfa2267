package message

import "context"

// ReducePairwise: ReduceScatterPairwise of shares, then the root receives the
// share of each member. It serves long vectors if order matters.
//
// Cost: 2(n-1) rounds, 2m(n-1)/n bytes. Exact.
func ReducePairwise(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	b := shares(len(a.Send), n, a.Elem)
	if rank != a.Root {
		sum := a.Scratch(b.size(rank))
		if err := reducePairwise(ctx, c, a, b, sum); err != nil {
			return err
		}
		return c.Send(ctx, a.Root, sum)
	}
	if err := reducePairwise(ctx, c, a, b, b.of(a.Recv, rank)); err != nil {
		return err
	}
	for i := 1; i < n; i++ {
		from := rankOf(i, rank, n)
		if err := c.Recv(ctx, from, b.of(a.Recv, from)); err != nil {
			return err
		}
	}
	return nil
}
