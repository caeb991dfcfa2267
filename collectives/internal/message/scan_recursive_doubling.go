package message

import "context"

// ScanRecursiveDoubling: in round k each member gives what it has combined so
// far to the one 2^k on and combines what comes, on the left.
//
//	member          0    1      2      3      4
//	round 1         0    0..1   1..2   2..3   3..4
//	round 2         0    0..1   0..2   0..3   1..4
//	round 3         0    0..1   0..2   0..3   0..4
//
// Cost: L rounds, L m bytes.
//
// (Hillis and Steele, "Data Parallel Algorithms", 1986.)
func ScanRecursiveDoubling(ctx context.Context, c Carrier, a *Args) error {
	n, rank := c.Size(), c.Rank()
	copy(a.Recv, a.Send)
	// What is sent must not change while what comes is combined with it: it is
	// Send as it came, then copies of the result so far.
	var spare []byte
	for dist := 1; dist < n; dist <<= 1 {
		to, from, src := inLine(rank+dist, n), inLine(rank-dist, n), a.Recv
		switch {
		case to == none || from == none:
		case dist == 1 && !same(a.Send, a.Recv):
			src = a.Send
		default:
			if spare == nil {
				spare = a.Scratch(len(a.Send))
			}
			copy(spare, a.Recv)
			src = spare
		}
		if err := exchangeFold(ctx, c, a, to, src, from, a.Recv); err != nil {
			return err
		}
	}
	return nil
}
