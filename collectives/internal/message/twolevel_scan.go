package message

import "context"

// ScanTwoLevel: each host scans by itself, and its last member, which leads it, has the sum of the
// host. The leaders scan these sums, each without its own, and broadcast the results to their
// hosts. There every member combines them ahead of its own.
//
//	member     0    1    2       3    4       5
//	host       a    a    a       b    b       c
//	scanned    0    0..1 0..2    3    3..4    5
//	leaders                           0..2    0..4
//	broadcast                    0..2         0..4
//	           0    0..1 0..2    0..3 0..4    0..5
//
// Needs hosts with members that follow one another; m bytes of scratch memory.
//
// Cost: that of Within for the largest host, that of Among for the hosts, and
// that of Within's broadcast.
//
// (Sanders and Träff, "Parallel Prefix (Scan) Algorithms for MPI", 2006.)
func ScanTwoLevel(ctx context.Context, c Transport, a *Args) error {
	h := a.Hosts
	leader := h.enterLast(c)
	if err := h.Within(Scan)(ctx, &h.local, h.part(a, 0, a.Send, a.Recv)); err != nil {
		return err
	}
	var before []byte
	if !h.first() {
		before = a.Scratch(len(a.Send))
	}
	if err := h.scanAmong(ctx, a, leader, a.Recv, before); err != nil || h.first() {
		return err
	}
	a.Combine(a.Recv, before, a.Recv)
	return nil
}

// first reports whether this member is on the first host, whose members have none
// before them.
func (h *Hosts) first() bool { return h.of[h.local.members[0]] == 0 }

// scanAmong gives the members of all hosts but the first the sum of the hosts
// before theirs; sum is the host's, at its leader.
func (h *Hosts) scanAmong(ctx context.Context, a *Args, leader int, sum, before []byte) error {
	if h.leads() {
		if err := h.Among(ExScan)(ctx, &h.leading, h.part(a, 0, sum, before)); err != nil {
			return err
		}
	}
	if h.first() {
		return nil
	}
	return h.Within(Broadcast)(ctx, &h.local, h.part(a, leader, nil, before))
}
