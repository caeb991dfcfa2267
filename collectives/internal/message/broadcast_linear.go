package message

import "context"

// BroadcastLinear: the root sends to each member in turn. No member relays, so
// every member but the root waits once: on few cores that has the fewest
// switches.
//
//	0 --> 1, 0 --> 2, 0 --> 3, ...
//
// Cost: n-1 rounds, (n-1)m bytes, all of them the root's.
func BroadcastLinear(ctx context.Context, c Transport, a *Args) error {
	return broadcastLinear(ctx, c, a.Root, a.Recv)
}

// broadcastLinear has the root send data to each member.
func broadcastLinear(ctx context.Context, c Transport, root int, data []byte) error {
	n, rank := c.Size(), c.Rank()
	if rank != root {
		return c.Recv(ctx, root, data)
	}
	if err := expectAll(ctx, c, len(data)); err != nil {
		return err
	}
	for i := 1; i < n; i++ {
		if err := c.Send(ctx, rankOf(i, root, n), data); err != nil {
			return err
		}
	}
	return nil
}
