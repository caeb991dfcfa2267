package message

import "context"

// ScanLinear: segments pass from member to member, each combining its own with
// what the one before has combined, while it sends the segment before on.
//
//	0 --s2--> 1 --s1--> 2 --s0--> 3
//
// Cost: with s segments, n-2+s rounds; m bytes and n-2 segments. Exact.
func ScanLinear(ctx context.Context, c Carrier, a *Args) error {
	n, rank := c.Size(), c.Rank()
	before, after := inLine(rank-1, n), inLine(rank+1, n)
	var ready []byte // combined and not sent on
	for lo, step := 0, a.segment(); lo < len(a.Send); lo += step {
		hi := min(lo+step, len(a.Send))
		next := a.Recv[lo:hi]
		copy(next, a.Send[lo:hi])
		if err := exchangeFold(ctx, c, a, after, ready, before, next); err != nil {
			return err
		}
		ready = next
	}
	return exchangeFold(ctx, c, a, after, ready, none, nil)
}
