package message

import "context"

// ScanTwoLevel: each host scans by itself, and its last member, which leads it,
// has the sum of all; the leaders scan these, each without its own, and
// broadcast what comes out to their hosts, where everyone puts it ahead.
//
//	member     0    1    2       3    4       5
//	host       a    a    a       b    b       c
//	scanned    0    0..1 0..2    3    3..4    5
//	leaders                           0..2    0..4
//	broadcast                    0..2         0..4
//	           0    0..1 0..2    0..3 0..4    0..5
//
// Needs hosts whose members follow one another; m bytes of scratch memory.
//
// Cost: that of Within for the largest host, that of Among for the hosts, and
// that of Within's broadcast.
//
// (Sanders and Träff, "Parallel Prefix (Scan) Algorithms for MPI", 2006.)
func ScanTwoLevel(ctx context.Context, c Carrier, a *Args) error {
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

// first: this member is on the first host, whose members have none before them.
func (h *Hosts) first() bool { return h.of[h.local.members[0]] == 0 }

// scanAmong gives members of all hosts but the first what those before theirs have
// summed up; sum is the host's, at its leader.
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
