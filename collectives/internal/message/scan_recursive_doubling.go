package message

import "context"

// ScanRecursiveDoubling: in round k each member sends its result so far to the member 2^k on. It
// combines the result that it receives, on the left.
//
//	member          0    1      2      3      4
//	round 1         0    0..1   1..2   2..3   3..4
//	round 2         0    0..1   0..2   0..3   1..4
//	round 3         0    0..1   0..2   0..3   0..4
//
// Cost: L rounds, L m bytes.
//
// (Hillis and Steele, "Data Parallel Algorithms", 1986.)
func ScanRecursiveDoubling(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	// A vector that a member sends must not change while it combines the received
	// one with it: Recv and a spare take turns.
	sum, spare := a.Send, []byte(nil)
	for dist := 1; dist < n; dist <<= 1 {
		to, from, next := inLine(rank+dist, n), inLine(rank-dist, n), a.Recv
		if to != none && from != none && same(sum, a.Recv) {
			if spare == nil {
				spare = a.Scratch(len(a.Send))
			}
			next = spare
		}
		if err := exchangeFold(ctx, c, to, sum, from, a.ahead(next, sum)); err != nil {
			return err
		}
		if from != none {
			sum = next
		}
	}
	if !same(sum, a.Recv) {
		a.copyTo(c, a.Recv, sum)
	}
	return nil
}
