package message

import "context"

// ReduceRabenseifner: reduce-scatter by recursive halving, then a binomial
// gather of the shares at the root.
//
//	n = 4, root 0     halving             gather
//	member 0   abcd       A...                ABCD
//	member 1   abcd  -->  ..C.  --> 0         .
//	member 2   abcd       .B..  --> 0         .
//	member 3   abcd       ...D  --> 2         .
//
// Cost: 2 log2 p rounds, 2m(p-1)/p bytes; a round and m more if n is no power
// of two.
//
// (Rabenseifner, "Optimization of Collective Reduction Operations", 2004.)
func ReduceRabenseifner(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	q := pairsOf(n)
	v, _ := q.virtual(rank)
	h := halving{pairs: q, v: v, b: shares(len(a.Send), q.p, a.Elem), root: a.Root}
	if stands := h.member(v); stands != rank { // the other member of the pair takes part for both
		return c.SendFold(ctx, stands, a.Send)
	}
	src, acc := a.Send, a.Recv
	if rank != a.Root { // only the root has an output
		acc = a.Scratch(len(a.Send))
	}
	if q.paired(v) { // take the vector of the other member of the pair in
		lower := q.member(v)
		other, sum := 2*lower+1-rank, a.behind(acc, src)
		sum.Left = other < rank // members are combined in their order
		if err := c.Fold(ctx, other, sum); err != nil {
			return err
		}
		src = acc
	}
	if n == 1 {
		copy(acc, src)
		return nil
	}
	if err := h.reduce(ctx, c, a, src, acc); err != nil {
		return err
	}
	root, _ := q.virtual(a.Root)
	return h.gather(ctx, c, acc, root)
}
