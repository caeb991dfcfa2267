package message

import "context"

// ReduceLinear: the root receives the vector of each member in turn and combines
// it in place. No member relays.
//
//	1 --> 0, 2 --> 0, 3 --> 0, ...
//
// Cost: n-1 rounds, (n-1)m bytes, all of them the root's. Exact: if order matters
// the root begins with member 0 and takes its own vector in its turn.
func ReduceLinear(ctx context.Context, c Transport, a *Args) error {
	return reduceLinear(ctx, c, a, a.Root)
}

// reduceLinear has each member send its vector to root. In order of ranks, the root folds from the
// vector of member 0 on.
func reduceLinear(ctx context.Context, c Transport, a *Args, root int) error {
	n, rank := c.Size(), c.Rank()
	ordered := a.inOrder() && root > 0
	switch {
	case rank != root && ordered && rank == 0:
		return c.Send(ctx, root, a.Send)
	case rank != root:
		return c.SendFold(ctx, root, a.Send)
	}
	if err := expectAll(ctx, c, len(a.Send)); err != nil {
		return err
	}
	if ordered {
		return reduceLinearInOrder(ctx, c, a)
	}
	sum := a.Send
	for i := 1; i < n; i++ {
		if err := c.Fold(ctx, rankOf(i, root, n), a.behind(a.Recv, sum)); err != nil {
			return err
		}
		sum = a.Recv
	}
	if n == 1 {
		copy(a.Recv, a.Send)
	}
	return nil
}

// reduceLinearInOrder is the part of a root that is not member 0.
func reduceLinearInOrder(ctx context.Context, c Transport, a *Args) error {
	own := a.Send
	if same(a.Send, a.Recv) {
		own = a.Scratch(len(a.Send))
		copy(own, a.Send)
	}
	if err := c.Recv(ctx, 0, a.Recv); err != nil {
		return err
	}
	for i := 1; i < c.Size(); i++ {
		if i == c.Rank() {
			a.Combine(a.Recv, a.Recv, own)
		} else if err := c.Fold(ctx, i, a.behind(a.Recv, a.Recv)); err != nil {
			return err
		}
	}
	return nil
}
