package message

import "context"

// ReduceBinomial: members combine vectors up the binomial tree of tree.go.
//
//	round 1   1 --> 0, 3 --> 2, 5 --> 4, 7 --> 6
//	round 2   2 --> 0, 6 --> 4
//	round 3   4 --> 0
//
// The members below a member follow it, so combining in this tree keeps the
// members' order if it begins at member 0. Operators that do not commute are
// reduced to member 0, which sends the result to the root.
//
// Cost: L rounds, L m bytes; one more of each if the operator does not commute
// and the root is not member 0.
//
// (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
// Operations in MPICH", 2005)
func ReduceBinomial(ctx context.Context, c Transport, a *Args) error {
	if a.Commutative || a.Root == 0 {
		return reduceBinomial(ctx, c, a, a.Root, nil)
	}
	switch c.Rank() {
	case 0:
		sum := a.Scratch(len(a.Send))
		if err := reduceBinomial(ctx, c, a, 0, sum); err != nil {
			return err
		}
		return c.Send(ctx, a.Root, sum)
	case a.Root:
		if err := reduceBinomial(ctx, c, a, 0, nil); err != nil {
			return err
		}
		return c.Recv(ctx, 0, a.Recv)
	default:
		return reduceBinomial(ctx, c, a, 0, nil)
	}
}

// reduceBinomial leaves the result at the root in acc, which members other than
// the root may use on the way. Without acc it uses the root's Recv, and scratch
// memory elsewhere.
func reduceBinomial(ctx context.Context, c Transport, a *Args, root int, acc []byte) error {
	n := c.Size()
	v := turned(c.Rank(), root, n)
	low := lowest(v, n)
	sum := a.Send // until this member has combined a vector with it
	if v == 0 && acc == nil {
		acc = a.Recv
	}
	for mask := 1; mask < low && v+mask < n; mask <<= 1 {
		if acc == nil {
			acc = a.Scratch(len(a.Send))
		}
		if err := c.Fold(ctx, rankOf(v+mask, root, n), a.behind(acc, sum)); err != nil {
			return err
		}
		sum = acc
	}
	if v == 0 {
		if n == 1 {
			copy(acc, sum)
		}
		return nil
	}
	return c.SendFold(ctx, rankOf(v-low, root, n), sum)
}
