package message

import "context"

// AllReduceRecursiveDoubling: in round k members 2^k apart exchange what they
// have combined and combine it further, the lower one's on the left.
//
//	round 1   0 <-> 1, 2 <-> 3, 4 <-> 5, 6 <-> 7
//	round 2   0 <-> 2, 1 <-> 3, 4 <-> 6, 5 <-> 7
//	round 3   0 <-> 4, 1 <-> 5, 2 <-> 6, 3 <-> 7
//
// Cost: log2 p rounds, m log2 p bytes; 2 rounds and 2m more if n is no power of
// two.
//
// (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
// Operations in MPICH", 2005)
func AllReduceRecursiveDoubling(ctx context.Context, c Carrier, a *Args) error {
	q, rank := pairsOf(c.Size()), c.Rank()
	v, stands := q.virtual(rank)
	if !stands {
		return servedByPair(ctx, c, a)
	}
	a.keep(c, a.Recv, a.Send)
	if q.paired(v) {
		if err := c.Fold(ctx, rank+1, a.Recv, false, a.Combine, a.Elem); err != nil {
			return err
		}
	}
	// What is sent must not change while the peer's is combined with it: it is
	// Send as it came, then copies of the result so far.
	src, spare := a.Send, []byte(nil)
	for mask := 1; mask < q.p; mask <<= 1 {
		if mask > 1 || q.paired(v) || same(a.Send, a.Recv) {
			if spare == nil {
				spare = a.Scratch(len(a.Send))
			}
			copy(spare, a.Recv)
			src = spare
		}
		peer := q.member(v ^ mask)
		if err := c.ExchangeFold(ctx, peer, src, peer, a.Recv, v&mask != 0, a.Combine, a.Elem); err != nil {
			return err
		}
	}
	if q.paired(v) {
		return c.Send(ctx, rank+1, a.Recv)
	}
	return nil
}

// servedByPair is the part of a member for which the one below stands.
func servedByPair(ctx context.Context, c Carrier, a *Args) error {
	if err := c.SendFold(ctx, c.Rank()-1, a.Send); err != nil {
		return err
	}
	return c.Recv(ctx, c.Rank()-1, a.Recv)
}
