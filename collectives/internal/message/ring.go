package message

import "context"

// ringReduce combines block i of all members' src in acc at member i, in n-1
// steps around the ring. A block starts at the member after its own and ends at
// its own. The operator must commute. acc has the places of all blocks and may be
// src; otherwise src keeps its content.
//
//	n = 3, step 0      step 1
//	0 --2--> 1         0 --1--> 1
//	1 --0--> 2         1 --2--> 2
//	2 --1--> 0         2 --0--> 0
func ringReduce(ctx context.Context, c Transport, a *Args, src, acc []byte, b blocks) error {
	n, rank := c.Size(), c.Rank()
	before, after := (rank+n-1)%n, (rank+1)%n
	give := b.of(src, before)
	for step := 2; step <= n; step++ {
		i := (rank + n - step + n) % n
		sum := b.of(acc, i)
		if err := c.ExchangeFold(ctx, after, give, before, a.ahead(sum, b.of(src, i))); err != nil {
			return err
		}
		give = sum
	}
	return nil
}

// ringAllGather passes every block around the ring, in n-1 steps. Block v is
// that of the member with number v from first on, and has its place in data.
func ringAllGather(ctx context.Context, c Transport, first int, data []byte, b blocks) error {
	n, rank := c.Size(), c.Rank()
	v := turned(rank, first, n)
	before, after := (rank+n-1)%n, (rank+1)%n
	for step := range n - 1 {
		give, take := (v+n-step)%n, (v+n-step-1)%n
		if err := c.Exchange(ctx, after, b.of(data, give), before, b.of(data, take)); err != nil {
			return err
		}
	}
	return nil
}
