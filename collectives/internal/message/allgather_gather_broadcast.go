package message

import "context"

// AllGatherGatherBroadcast: member 0 receives all blocks and then sends all of
// them to every member. No algorithm needs fewer messages, and every other member
// waits once: it serves short blocks where members outnumber cores.
//
//	1 --> 0, 2 --> 0, 3 --> 0      0 --> 1, 0 --> 2, 0 --> 3
//
// Needs blocks that follow one another.
//
// Cost: 2(n-1) rounds; m(n-1)/n and (n-1)m bytes, all of them member 0's.
func AllGatherGatherBroadcast(ctx context.Context, c Transport, a *Args) error {
	if err := gatherLinear(ctx, c, a, 0); err != nil {
		return err
	}
	return broadcastLinear(ctx, c, 0, a.gathered().span(a.Recv, 0, c.Size()))
}
