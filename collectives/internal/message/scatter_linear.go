package message

import "context"

// ScatterLinear: the root sends each member its block in turn.
//
//	0 --> 1, 0 --> 2, 0 --> 3, ...
//
// Cost: n-1 rounds, m(n-1)/n bytes.
func ScatterLinear(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	if rank != a.Root {
		return c.Recv(ctx, a.Root, a.Recv)
	}
	if err := expectAll(ctx, c, len(a.Send)); err != nil {
		return err
	}
	b := a.scattered()
	for i := 1; i < n; i++ {
		to := rankOf(i, rank, n)
		if err := c.Send(ctx, to, b.of(a.Send, to)); err != nil {
			return err
		}
	}
	a.copyTo(c, a.Recv, b.of(a.Send, rank))
	return nil
}
