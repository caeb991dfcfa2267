package message

import "context"

// AllReduceLinear: member 0 receives and combines all vectors, then sends the
// result to all. Every other member waits once: no algorithm is faster for small
// vectors where members outnumber cores.
//
//	1 --> 0, 2 --> 0, 3 --> 0      0 --> 1, 0 --> 2, 0 --> 3
//
// Cost: 2(n-1) rounds, 2(n-1)m bytes, all of them member 0's. Exact.
func AllReduceLinear(ctx context.Context, c Transport, a *Args) error {
	if err := reduceLinear(ctx, c, a, 0); err != nil {
		return err
	}
	return broadcastLinear(ctx, c, 0, a.Recv)
}
