package message

import "context"

// AllGatherNeighborExchange: a member exchanges with its two neighbors in turn:
// first its own block, then always the two blocks that it got last. It has half
// the ring's rounds.
//
//	n = 4             step 0      step 1
//	member 0   a...       ab..        abcd
//	member 1   .b..  -->  ab..  -->   abcd    0 <-> 1, 2 <-> 3, then
//	member 2   ..c.       ..cd        abcd    1 <-> 2, 3 <-> 0
//	member 3   ...d       ..cd        abcd
//
// Needs an even number of members, and blocks that follow one another.
//
// Cost: n/2 rounds, m(n-1)/n bytes.
//
// (Chen, Zhang, Zhang and Yuan, "Performance Evaluation of Allgather Algorithms
// on Terascale Linux Cluster with Fast Ethernet", 2005.)
func AllGatherNeighborExchange(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	b := a.gathered()
	a.copyTo(c, b.of(a.Recv, rank), a.Send)
	if n == 1 {
		return nil
	}
	even := rank &^ 1 // the first of the pair of step 0
	peers := [2]int{rank ^ 1, (rank + n - 1) % n}
	took, turn := [2]int{even, even}, [2]int{2, n - 2}
	if rank != even {
		peers[1], turn = (rank+1)%n, [2]int{n - 2, 2}
	}
	if err := c.Exchange(ctx, peers[0], b.of(a.Recv, rank), peers[0], b.of(a.Recv, peers[0])); err != nil {
		return err
	}
	give := even // the first of the two blocks that came last
	for step := 1; step < n/2; step++ {
		side := step % 2
		took[side] = (took[side] + turn[side]) % n
		take := took[side]
		err := c.Exchange(ctx, peers[side], b.span(a.Recv, give, give+2), peers[side], b.span(a.Recv, take, take+2))
		if err != nil {
			return err
		}
		give = take
	}
	return nil
}
