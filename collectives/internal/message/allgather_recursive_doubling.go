package message

import "context"

// AllGatherRecursiveDoubling: in round k members 2^k apart exchange all the
// blocks that they have, which are always those of neighbors.
//
//	n = 4             round 1     round 2
//	member 0   a          ab          abcd
//	member 1   b    -->   ab    -->   abcd
//	member 2   c          cd          abcd
//	member 3   d          cd          abcd
//
// Needs blocks that follow one another.
//
// Cost: log2 p rounds, m(p-1)/n bytes; 2 rounds and less than 2m more if n is no
// power of two.
//
// (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
// Operations in MPICH", 2005)
func AllGatherRecursiveDoubling(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	q, b := pairsOf(n), a.gathered()
	v, stands := q.virtual(rank)
	if !stands {
		if err := c.Send(ctx, rank-1, a.Send); err != nil {
			return err
		}
		return c.Recv(ctx, rank-1, b.span(a.Recv, 0, n))
	}
	a.copyTo(c, b.of(a.Recv, rank), a.Send)
	if q.paired(v) {
		if err := c.Recv(ctx, rank+1, b.of(a.Recv, rank+1)); err != nil {
			return err
		}
	}
	for mask := 1; mask < q.p; mask <<= 1 {
		lo, peer := v&^(mask-1), v^mask
		theirs := peer &^ (mask - 1)
		give := b.span(a.Recv, q.member(lo), q.member(lo+mask))
		take := b.span(a.Recv, q.member(theirs), q.member(theirs+mask))
		if err := c.Exchange(ctx, q.member(peer), give, q.member(peer), take); err != nil {
			return err
		}
	}
	if q.paired(v) {
		return c.Send(ctx, rank+1, b.span(a.Recv, 0, n))
	}
	return nil
}
