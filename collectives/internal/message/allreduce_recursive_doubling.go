package message

import (
	"context"
	"math/bits"
)

// AllReduceRecursiveDoubling: in round k members 2^k apart exchange their results
// so far and combine them, the lower member's on the left.
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
func AllReduceRecursiveDoubling(ctx context.Context, c Transport, a *Args) error {
	q, rank := pairsOf(c.Size()), c.Rank()
	v, stands := q.virtual(rank)
	if !stands {
		return servedByPair(ctx, c, a)
	}
	sum := a.Send
	if q.paired(v) {
		if err := c.Fold(ctx, rank+1, a.behind(a.Recv, sum)); err != nil {
			return err
		}
		sum = a.Recv
	}
	sum, err := doubled(ctx, c, a, q, v, sum)
	if err != nil {
		return err
	}
	if !same(sum, a.Recv) {
		a.copyTo(c, a.Recv, sum)
	}
	if q.paired(v) {
		return c.Send(ctx, rank+1, a.Recv)
	}
	return nil
}

// doubled combines the vectors of pairs, from sum on, and returns the memory of the
// result. A vector that a member sends must not change while it combines its peer's
// with it. So Recv and a spare take turns, and Recv comes last if it can.
func doubled(ctx context.Context, c Transport, a *Args, q pairs, v int, sum []byte) ([]byte, error) {
	two := [2][]byte{a.Recv}
	if q.p > 2 || same(sum, a.Recv) {
		two[1] = a.Scratch(len(a.Recv))
	}
	turn := bits.Len(uint(q.p)) & 1 // of the first round: 0 if the number of rounds is odd
	if same(sum, a.Recv) {
		turn = 1
	}
	for mask := 1; mask < q.p; mask <<= 1 {
		peer, next := q.member(v^mask), a.behind(two[turn], sum)
		next.Left = v&mask != 0
		if err := c.ExchangeFold(ctx, peer, sum, peer, next); err != nil {
			return nil, err
		}
		sum, turn = two[turn], 1-turn
	}
	return sum, nil
}

// servedByPair is the part of a member whose pair the lower one stands for.
func servedByPair(ctx context.Context, c Transport, a *Args) error {
	if err := c.SendFold(ctx, c.Rank()-1, a.Send); err != nil {
		return err
	}
	return c.Recv(ctx, c.Rank()-1, a.Recv)
}
