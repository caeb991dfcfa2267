package message

import "context"

// AllReduceRing: members reduce shares around the ring, then pass the results
// around it.
//
//	n = 3             ring reduce     ring all-gather
//	member 0   abc        A..             ABC
//	member 1   abc  -->   .B.     -->     ABC
//	member 2   abc        ..C             ABC
//
// Cost: 2(n-1) rounds, 2m(n-1)/n bytes, for every n. Needs an operator that
// commutes.
//
// (Patarasuk and Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of
// Workstations", 2009.)
func AllReduceRing(ctx context.Context, c Transport, a *Args) error {
	return allReduceRing(ctx, c, a, a.Send, a.Recv)
}

// allReduceRing reduces by the ring: each member reduces one share, and all gather the shares.
func allReduceRing(ctx context.Context, c Transport, a *Args, send, recv []byte) error {
	if c.Size() == 1 {
		copy(recv, send)
		return nil
	}
	b := shares(len(send), c.Size(), a.Elem)
	if err := ringReduce(ctx, c, a, send, recv, b); err != nil {
		return err
	}
	return ringAllGather(ctx, c, 0, recv, b)
}
