package message

import "context"

// AllToAllLinear: one member after another sends its blocks to all other members.
//
//	turn of 0: 0 --> 1, 2, 3     turn of 1: 1 --> 2, 3, 0     ...
//
// If transports have room for the blocks, a member waits twice for any n: for the
// blocks of members before it, and of those after it. It serves transports whose
// messages cost less than a wait.
//
// Cost: 3n-4 rounds and as many blocks.
func AllToAllLinear(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	out, in := a.toAll(n)
	for i := range n {
		if i != rank {
			if err := c.Recv(ctx, i, in.of(a.Recv, i)); err != nil {
				return err
			}
			continue
		}
		a.copyTo(c, in.of(a.Recv, rank), out.of(a.Send, rank))
		for k := 1; k < n; k++ {
			to := (rank + k) % n
			if err := c.Send(ctx, to, out.of(a.Send, to)); err != nil {
				return err
			}
		}
	}
	return nil
}
