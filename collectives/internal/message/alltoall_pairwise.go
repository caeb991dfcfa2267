package message

import "context"

// AllToAllPairwise: in round k each member sends its block to the member k on and
// receives that of the member k back. If n is a power of two, both are the same
// member, rank xor k.
//
//	round k   r --> r+k, r-k --> r      or      r <-> r^k
//
// Cost: n-1 rounds, m(n-1)/n bytes.
//
// (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
// Operations in MPICH", 2005)
func AllToAllPairwise(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	out, in := a.toAll(n)
	a.copyTo(c, in.of(a.Recv, rank), out.of(a.Send, rank))
	for k := 1; k < n; k++ {
		to, from := (rank+k)%n, (rank+n-k)%n
		if n&(n-1) == 0 {
			to, from = rank^k, rank^k
		}
		if err := c.Exchange(ctx, to, out.of(a.Send, to), from, in.of(a.Recv, from)); err != nil {
			return err
		}
	}
	return nil
}
