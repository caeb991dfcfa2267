package message

import "context"

// GatherLinear: the root takes the block of each member in turn.
//
//	1 --> 0, 2 --> 0, 3 --> 0, ...
//
// Cost: n-1 rounds, m(n-1)/n bytes.
func GatherLinear(ctx context.Context, c Transport, a *Args) error {
	return gatherLinear(ctx, c, a, a.Root)
}

// gatherLinear has each member send its block to root, which receives them in the order of its
// neighbors.
func gatherLinear(ctx context.Context, c Transport, a *Args, root int) error {
	n, rank := c.Size(), c.Rank()
	if rank != root {
		return c.Send(ctx, root, a.Send)
	}
	if err := expectAll(ctx, c, len(a.Recv)); err != nil {
		return err
	}
	b := a.gathered()
	a.copyTo(c, b.of(a.Recv, rank), a.Send)
	for i := 1; i < n; i++ {
		from := rankOf(i, rank, n)
		if err := c.Recv(ctx, from, b.of(a.Recv, from)); err != nil {
			return err
		}
	}
	return nil
}
