package message

import "context"

// ReduceScatterHalving: members p/2 apart split their vectors into the blocks of
// the lower and of the upper half of the members. Then members p/4 apart split
// the rest, and so on.
//
//	p = 4      hold        round 1      round 2
//	member 0   abcd        ab..         A...
//	member 1   abcd        ab..         .B..
//	member 2   abcd        ..cd         ..C.
//	member 3   abcd        ..cd         ...D
//
// Needs an operator that commutes, since the first vectors to be combined are not
// neighbors', and blocks that follow one another; m bytes of scratch memory.
//
// Cost: log2 p rounds, m(p-1)/n bytes; 2 rounds and less than 2m more if n is no
// power of two.
//
// (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
// Operations in MPICH", 2005)
func ReduceScatterHalving(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	q, b := pairsOf(n), a.reduced()
	v, stands := q.virtual(rank)
	if !stands {
		if err := c.SendFold(ctx, rank-1, b.span(a.Send, 0, n)); err != nil {
			return err
		}
		return c.Recv(ctx, rank-1, a.Recv)
	}
	if n == 1 {
		copy(a.Recv, b.of(a.Send, 0))
		return nil
	}
	src, acc := a.Send, a.Scratch(len(a.Send))
	if q.paired(v) {
		if err := c.Fold(ctx, rank+1, a.ahead(b.span(acc, 0, n), b.span(src, 0, n))); err != nil {
			return err
		}
		src = acc
	}
	if err := halve(ctx, c, a, q, v, src, acc); err != nil {
		return err
	}
	if q.paired(v) {
		copy(a.Recv, b.of(acc, rank))
		return c.Send(ctx, rank+1, b.of(acc, rank+1))
	}
	return nil
}

// halve leaves in acc the combined blocks of the members for which v stands.
func halve(ctx context.Context, c Transport, a *Args, q pairs, v int, src, acc []byte) error {
	b := a.reduced()
	lo, hi := 0, q.p
	for mask := q.p >> 1; mask > 0; mask >>= 1 {
		peer, mid := q.member(v^mask), lo+mask
		give := b.span(src, q.member(mid), q.member(hi))
		if v&mask != 0 {
			give = b.span(src, q.member(lo), q.member(mid))
			lo = mid
		} else {
			hi = mid
		}
		keep := a.ahead(b.span(acc, q.member(lo), q.member(hi)), b.span(src, q.member(lo), q.member(hi)))
		if mask == 1 && !q.paired(v) {
			keep.Dst = a.Recv // Dst may be the operand, in place
		}
		if err := c.ExchangeFold(ctx, peer, give, peer, keep); err != nil {
			return err
		}
		src = acc
	}
	return nil
}
