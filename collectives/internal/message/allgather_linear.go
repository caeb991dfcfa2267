package message

import "context"

// AllGatherLinear: the members send their blocks to all others one member after
// the other.
//
//	turn of 0: 0 --> 1, 2, 3     turn of 1: 1 --> 2, 3, 0     ...
//
// Where the carrier has room for the blocks a member waits twice, for those
// before it and for those after it, however many there are: for carriers whose
// messages cost less than waiting does.
//
// Cost: 3n-4 rounds and as many blocks.
func AllGatherLinear(ctx context.Context, c Carrier, a *Args) error {
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
