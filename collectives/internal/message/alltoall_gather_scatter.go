package message

import "context"

// AllToAllGatherScatter: member 0 receives all blocks and sends each member its
// own. No algorithm needs fewer messages, and every other member waits once: it
// serves very short blocks where members outnumber cores. Member 0 needs (n+1)m
// bytes of scratch memory.
//
//	1 --> 0, 2 --> 0, 3 --> 0      0 --> 1, 0 --> 2, 0 --> 3
//
// Cost: 2(n-1) rounds, 2(n-1)m bytes, all of them member 0's.
func AllToAllGatherScatter(ctx context.Context, c Transport, a *Args) error {
	n, rank, m := c.Size(), c.Rank(), len(a.Send)
	if rank != 0 {
		if err := c.Send(ctx, 0, a.Send); err != nil {
			return err
		}
		return c.Recv(ctx, 0, a.Recv)
	}
	all, out := alike(m, nil, nil), alike(m/n, nil, nil)
	mem, msg := a.Scratch(n*m), a.Scratch(m)
	copy(mem, a.Send)
	for from := 1; from < n; from++ {
		if err := c.Recv(ctx, from, all.of(mem, from)); err != nil {
			return err
		}
	}
	for to := range n {
		for from := range n {
			copy(out.of(msg, from), out.of(all.of(mem, from), to))
		}
		if to == 0 {
			copy(a.Recv, msg)
		} else if err := c.Send(ctx, to, msg); err != nil {
			return err
		}
	}
	return nil
}
