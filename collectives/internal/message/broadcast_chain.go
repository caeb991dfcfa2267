package message

import "context"

// BroadcastChain: segments pass from member to member; each sends one on while it
// receives the next.
//
//	0 --s2--> 1 --s1--> 2 --s0--> 3
//
// Cost: with s segments, n-2+s rounds; m bytes and n-2 segments.
//
// (Worringen, "Pipelining and Overlapping for MPI Collective Operations", 2003.)
func BroadcastChain(ctx context.Context, c Transport, a *Args) error {
	n := c.Size()
	v := turned(c.Rank(), a.Root, n)
	before, after := none, none
	if v > 0 {
		before = rankOf(v-1, a.Root, n)
	}
	if v < n-1 {
		after = rankOf(v+1, a.Root, n)
	}
	var ready []byte // received and not sent on
	for lo, step := 0, a.segment(); lo < len(a.Recv); lo += step {
		next := a.Recv[lo:min(lo+step, len(a.Recv))]
		if err := exchange(ctx, c, after, ready, before, next); err != nil {
			return err
		}
		ready = next
	}
	return exchange(ctx, c, after, ready, none, nil)
}
