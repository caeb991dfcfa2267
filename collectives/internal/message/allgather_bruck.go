package message

import "context"

// AllGatherBruck: each member has a run of blocks from its own on. In round k it
// receives the run of the member 2^k on and appends it.
//
//	n = 3             round 1     round 2     turned back
//	member 0   a          ab          abc         abc
//	member 1   b    -->   bc    -->   bca   -->   abc
//	member 2   c          ca          cab         abc
//
// It has the fewest rounds for any n, but needs m bytes of scratch memory and one
// more copy, so it serves short blocks.
//
// Cost: L rounds, m(n-1)/n bytes.
//
// (Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient Algorithms for
// All-to-All Communications in Multiport Message-Passing Systems", 1997.)
func AllGatherBruck(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	b := a.gathered()
	total := 0
	for i := range n {
		total += b.size(i)
	}
	run := a.Scratch(total) // of blocks rank, rank+1, ..., rank-1
	have := copy(run, a.Send)
	for dist := 1; dist < n; dist <<= 1 {
		to, from := (rank+n-dist)%n, (rank+dist)%n
		count := min(dist, n-dist)
		give, take := 0, 0
		for i := range count {
			give += b.size((rank + i) % n)
			take += b.size((from + i) % n)
		}
		if err := c.Exchange(ctx, to, run[:give], from, run[have:have+take]); err != nil {
			return err
		}
		have += take
	}
	for i := range n {
		block := b.of(a.Recv, (rank+i)%n)
		copy(block, run)
		run = run[len(block):]
	}
	return nil
}
