package message

import "context"

// ExScanTwoLevel: as ScanTwoLevel, but everyone keeps what comes apart from its
// own vector, which the last member of a host puts in for the sum of all. The
// first of a host, which has nobody before it there, takes what the leader
// broadcasts as it is.
//
//	member     0    1    2       3    4       5
//	host       a    a    a       b    b       c
//	scanned    -    0    0..1    -    3       -
//	leaders                           0..2    0..4
//	broadcast                    0..2         0..4
//	           -    0    0..1    0..2 0..3    0..4
//
// Needs hosts whose members follow one another; m bytes of scratch memory, and
// as much again at leaders.
//
// Cost: that of Within for the largest host, that of Among for the hosts, and
// that of Within's broadcast.
//
// (Sanders and Träff, "Parallel Prefix (Scan) Algorithms for MPI", 2006.)
func ExScanTwoLevel(ctx context.Context, c Carrier, a *Args) error {
	h := a.Hosts
	leader := h.enterLast(c)
	begins, sum := h.local.Rank() == 0, a.Send // of a leader that is alone
	if h.leads() && !begins {
		sum = a.Scratch(len(a.Send))
		copy(sum, a.Send)
	}
	if err := h.Within(ExScan)(ctx, &h.local, h.part(a, 0, a.Send, a.Recv)); err != nil {
		return err
	}
	if h.leads() && !begins {
		a.Combine(sum, a.Recv, sum)
	}
	before := a.Recv
	if !begins && !h.first() {
		before = a.Scratch(len(a.Send))
	}
	if err := h.scanAmong(ctx, a, leader, sum, before); err != nil || begins || h.first() {
		return err
	}
	a.Combine(a.Recv, before, a.Recv)
	return nil
}
