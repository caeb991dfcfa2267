package message

import "context"

// AllGatherLinear: one member after another sends its block to all other members.
//
//	turn of 0: 0 --> 1, 2, 3     turn of 1: 1 --> 2, 3, 0     ...
//
// If transports have room for the blocks, a member waits twice for any n: for the
// blocks of members before it, and of those after it. It serves transports whose
// messages cost less than a wait.
//
// Cost: 3n-4 rounds and as many blocks.
func AllGatherLinear(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	b := a.gathered()
	for i := range n {
		if i != rank {
			if err := c.Recv(ctx, i, b.of(a.Recv, i)); err != nil {
				return err
			}
			continue
		}
		a.copyTo(c, b.of(a.Recv, rank), a.Send)
		for k := 1; k < n; k++ {
			if err := c.Send(ctx, (rank+k)%n, a.Send); err != nil {
				return err
			}
		}
	}
	return nil
}
