package message

import "context"

// ScanLinear: segments pass from member to member. Each member combines its own
// segment with the result of the member before, while it sends the segment before
// on.
//
//	0 --s2--> 1 --s1--> 2 --s0--> 3
//
// Cost: with s segments, n-2+s rounds; m bytes and n-2 segments; two members have one. Exact.
func ScanLinear(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	before, after := inLine(rank-1, n), inLine(rank+1, n)
	step := a.segment()
	if n == 2 { // no further member needs the result
		step = len(a.Send)
	}
	if before == none {
		return scanFirst(ctx, c, a, after, step)
	}
	var ready []byte // combined and not sent on
	for lo := 0; lo < len(a.Send); lo += step {
		hi := min(lo+step, len(a.Send))
		next := a.Recv[lo:hi]
		if err := exchangeFold(ctx, c, after, ready, before, a.ahead(next, a.Send[lo:hi])); err != nil {
			return err
		}
		ready = next
	}
	return exchangeFold(ctx, c, after, ready, none, Folding{})
}

// scanFirst sends each segment, for which the next members wait, before it stores
// it.
func scanFirst(ctx context.Context, c Transport, a *Args, after, step int) error {
	for lo := 0; lo < len(a.Send); lo += step {
		hi := min(lo+step, len(a.Send))
		if after != none {
			if err := c.SendFold(ctx, after, a.Send[lo:hi]); err != nil {
				return err
			}
		}
		a.copyTo(c, a.Recv[lo:hi], a.Send[lo:hi])
	}
	return nil
}
