package message

import "context"

// ReduceScatterPairwise: each member sends every other member its block, in n-1
// rounds.
//
//	round k   r --> r+k, r-k --> r
//
// An operator that commutes is applied as blocks come. If order matters, a member
// keeps the blocks in scratch memory for n-1 blocks and combines them at the end,
// from left to right.
//
// Cost: n-1 rounds, m(n-1)/n bytes. Exact.
//
// (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
// Operations in MPICH", 2005)
func ReduceScatterPairwise(ctx context.Context, c Transport, a *Args) error {
	return reducePairwise(ctx, c, a, a.reduced(), a.Recv)
}

// reducePairwise leaves this member's block of the result in dst, which may be
// its block of Send.
func reducePairwise(ctx context.Context, c Transport, a *Args, b blocks, dst []byte) error {
	if a.inOrder() {
		return reducePairwiseInOrder(ctx, c, a, b, dst)
	}
	n, rank := c.Size(), c.Rank()
	sum := b.of(a.Send, rank)
	for k := 1; k < n; k++ {
		to, from := (rank+k)%n, (rank+n-k)%n
		if err := c.ExchangeFold(ctx, to, b.of(a.Send, to), from, a.ahead(dst, sum)); err != nil {
			return err
		}
		sum = dst
	}
	if n == 1 {
		copy(dst, sum)
	}
	return nil
}

// reducePairwiseInOrder keeps the block of member i as block turned(i, rank+1, n)
// of scratch memory.
func reducePairwiseInOrder(ctx context.Context, c Transport, a *Args, b blocks, dst []byte) error {
	n, rank := c.Size(), c.Rank()
	own, places := b.of(a.Send, rank), alike(len(dst), nil, nil)
	kept := a.Scratch(len(dst) * (n - 1))
	for k := 1; k < n; k++ {
		to, from := (rank+k)%n, (rank+n-k)%n
		place := places.of(kept, turned(from, rank+1, n))
		if err := c.Exchange(ctx, to, b.of(a.Send, to), from, place); err != nil {
			return err
		}
	}
	sum := own
	for i := range n {
		came := own
		if i != rank {
			came = places.of(kept, turned(i, rank+1, n))
		}
		into := sum
		switch {
		case i == 0:
			sum = came
			continue
		case i == n-1:
			into = dst
		case i == 1 && rank == 0:
			into = came // sum is still Send
		}
		a.Combine(into, sum, came)
		sum = into
	}
	if n == 1 {
		copy(dst, own)
	}
	return nil
}
