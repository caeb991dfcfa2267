package message

import "context"

// ReduceScatterReduceScatter: member 0 receives and combines all vectors, then
// sends each member its block. No algorithm needs fewer messages, and every other
// member waits once: it serves short vectors where members outnumber cores.
//
//	1 --> 0, 2 --> 0, 3 --> 0      0 --> 1, 0 --> 2, 0 --> 3
//
// Needs blocks that follow one another, and m bytes of scratch memory.
//
// Cost: 2(n-1) rounds; (n-1)m and m(n-1)/n bytes, all of them member 0's. Exact.
func ReduceScatterReduceScatter(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	b := a.reduced()
	if rank != 0 {
		if err := c.SendFold(ctx, 0, b.span(a.Send, 0, n)); err != nil {
			return err
		}
		return c.Recv(ctx, 0, a.Recv)
	}
	sum := a.Scratch(len(a.Send))
	whole := b.span(sum, 0, n)
	own := b.span(a.Send, 0, n)
	for from := 1; from < n; from++ {
		if err := c.Fold(ctx, from, a.behind(whole, own)); err != nil {
			return err
		}
		own = whole
	}
	if n == 1 {
		copy(whole, own)
	}
	for to := 1; to < n; to++ {
		if err := c.Send(ctx, to, b.of(sum, to)); err != nil {
			return err
		}
	}
	copy(a.Recv, b.of(sum, 0))
	return nil
}
