package message

import "context"

// ExScanRecursiveDoubling: as ScanRecursiveDoubling, but a member keeps the combination before it
// apart. It adds its own vector only to the vectors that it sends.
//
//	member          0    1      2      3      4
//	round 1         -    0      1      2      3
//	round 2         -    0      0..1   0..2   1..3
//	round 3         -    0      0..1   0..2   0..3
//
// Cost: L rounds, L m bytes.
//
// (Hillis and Steele, "Data Parallel Algorithms", 1986.)
func ExScanRecursiveDoubling(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	own := a.Send
	if rank > 0 && rank+1 < n && same(a.Send, a.Recv) { // the incoming vector would overwrite the outgoing one
		own = a.Scratch(len(a.Send))
		copy(own, a.Send)
	}
	var spare []byte
	for dist := 1; dist < n; dist <<= 1 {
		to, from, src := inLine(rank+dist, n), inLine(rank-dist, n), own
		if dist > 1 && rank > 0 && to != none {
			if spare == nil {
				spare = a.Scratch(len(a.Send))
			}
			a.Combine(spare, a.Recv, own)
			src = spare
		}
		var err error
		if dist == 1 {
			err = exchange(ctx, c, to, src, from, a.Recv)
		} else {
			err = exchangeFold(ctx, c, to, src, from, a.ahead(a.Recv, a.Recv))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
