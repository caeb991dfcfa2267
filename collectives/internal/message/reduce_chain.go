package message

import "context"

// ReduceChain: segments pass from member to member up to the root. Each member
// combines one with its own while it sends the one before on.
//
//	1 --s2--> 2 --s1--> 3 --s0--> 0
//
// Cost: with s segments, n-2+s rounds; m bytes and n-2 segments. Needs an
// operator that commutes, since the chain ends at the root.
//
// (Worringen, "Pipelining and Overlapping for MPI Collective Operations", 2003.)
func ReduceChain(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	if n == 1 {
		copy(a.Recv, a.Send)
		return nil
	}
	step := min(a.segment(), len(a.Send))
	before, after := (rank+n-1)%n, (rank+1)%n
	first, last := before == a.Root, rank == a.Root
	if first {
		before = none
	}
	if last {
		after = none
	}
	var two [2][]byte // one segment to send and one to combine
	if !first && !last {
		two = [2][]byte{a.Scratch(step), a.Scratch(step)}
	}
	var ready []byte // combined and not sent on
	for lo, k := 0, 0; lo < len(a.Send); lo, k = lo+step, k+1 {
		own := a.Send[lo:min(lo+step, len(a.Send))]
		next := own
		switch {
		case last:
			next = a.Recv[lo:min(lo+step, len(a.Send))]
		case !first:
			next = two[k%2][:len(own)]
		}
		if err := exchangeFold(ctx, c, after, ready, before, a.ahead(next, own)); err != nil {
			return err
		}
		ready = next
	}
	return exchangeFold(ctx, c, after, ready, none, Folding{})
}
