package message

import "context"

// ExScanLinear: as ScanLinear, but a member keeps the combination before it apart. It adds its own
// vector only to the segments that it sends.
//
//	0 --s2--> 1 --s1--> 2 --s0--> 3
//
// Cost: with s segments, n-2+s rounds; m bytes and n-2 segments. Exact.
func ExScanLinear(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	before, after := inLine(rank-1, n), inLine(rank+1, n)
	step := min(a.segment(), len(a.Send))
	var kept, sum []byte // own segment if Recv is Send; the segment to send
	if before != none && after != none {
		sum = a.Scratch(step)
		if same(a.Send, a.Recv) {
			kept = a.Scratch(step)
		}
	}
	var ready []byte // combined and not sent on
	for lo := 0; lo < len(a.Send); lo += step {
		hi := min(lo+step, len(a.Send))
		own := a.Send[lo:hi]
		if kept != nil {
			own = kept[:copy(kept, own)]
		}
		var came []byte
		if before != none {
			came = a.Recv[lo:hi]
		}
		if err := exchange(ctx, c, after, ready, before, came); err != nil {
			return err
		}
		ready = own
		if sum != nil {
			ready = sum[:hi-lo]
			a.Combine(ready, came, own)
		}
	}
	return exchange(ctx, c, after, ready, none, nil)
}
