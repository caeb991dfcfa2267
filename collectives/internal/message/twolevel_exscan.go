package message

import "context"

// ExScanTwoLevel: as ScanTwoLevel, but every member keeps the combination before
// it apart from its own vector. The last member of a host adds its own for the
// sum of its host. The first member of a host, which has none before it there,
// uses the leader's broadcast unchanged.
//
//	member     0    1    2       3    4       5
//	host       a    a    a       b    b       c
//	scanned    -    0    0..1    -    3       -
//	leaders                           0..2    0..4
//	broadcast                    0..2         0..4
//	           -    0    0..1    0..2 0..3    0..4
//
// Needs hosts with members that follow one another; m bytes of scratch memory,
// and as much again at leaders.
//
// Cost: that of Within for the largest host, that of Among for the hosts, and
// that of Within's broadcast.
//
// (Sanders and Träff, "Parallel Prefix (Scan) Algorithms for MPI", 2006.)
func ExScanTwoLevel(ctx context.Context, c Transport, a *Args) error {
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
