package message

import "context"

// AllReduceRabenseifner: reduce-scatter by recursive halving, then all-gather
// by recursive doubling.
//
//	n = 4             halving        doubling
//	member 0   abcd       A...           ABCD
//	member 1   abcd  -->  ..C.   -->     ABCD
//	member 2   abcd       .B..           ABCD
//	member 3   abcd       ...D           ABCD
//
// Cost: 2 log2 p rounds, 2m(p-1)/p bytes; 2 rounds and 2m more if n is no power
// of two.
//
// (Rabenseifner, "Optimization of Collective Reduction Operations", 2004.)
func AllReduceRabenseifner(ctx context.Context, c Transport, a *Args) error {
	q, rank := pairsOf(c.Size()), c.Rank()
	v, stands := q.virtual(rank)
	if !stands {
		return servedByPair(ctx, c, a)
	}
	src := a.Send
	if q.paired(v) {
		if err := c.Fold(ctx, rank+1, a.behind(a.Recv, src)); err != nil {
			return err
		}
		src = a.Recv
	}
	if q.p == 1 {
		copy(a.Recv, src)
		return nil
	}
	h := halving{pairs: q, v: v, b: shares(len(a.Send), q.p, a.Elem), root: -1}
	if err := h.reduce(ctx, c, a, src, a.Recv); err != nil {
		return err
	}
	if err := h.allGather(ctx, c, a.Recv); err != nil {
		return err
	}
	if q.paired(v) {
		return c.Send(ctx, rank+1, a.Recv)
	}
	return nil
}
