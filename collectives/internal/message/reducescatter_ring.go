package message

import "context"

// ReduceScatterRing: a block starts at the member after its own and passes around
// the ring. Each member combines it with its own vector; the last one is the
// block's member.
//
//	n = 3, step 0      step 1
//	0 --2--> 1         0 --1--> 1
//	1 --0--> 2         1 --2--> 2
//	2 --1--> 0         2 --0--> 0
//
// Every member talks to its two neighbors only. Needs an operator that commutes,
// and two blocks of scratch memory.
//
// Cost: n-1 rounds, m(n-1)/n bytes.
//
// (Patarasuk and Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of
// Workstations", 2009.)
func ReduceScatterRing(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	b := a.reduced()
	if n == 1 {
		copy(a.Recv, b.of(a.Send, 0))
		return nil
	}
	largest := 0
	for i := range n {
		largest = max(largest, b.size(i))
	}
	two := a.Scratch(2 * largest)
	before, after := (rank+n-1)%n, (rank+1)%n
	give := b.of(a.Send, before)
	for step := 2; step <= n; step++ {
		i := (rank + n - step + n) % n
		sum := two[step%2*largest:][:b.size(i)]
		if step == n {
			sum = a.Recv
		}
		if err := c.ExchangeFold(ctx, after, give, before, a.ahead(sum, b.of(a.Send, i))); err != nil {
			return err
		}
		give = sum
	}
	return nil
}
