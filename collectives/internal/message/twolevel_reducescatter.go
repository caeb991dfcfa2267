package message

import "context"

// ReduceScatterTwoLevel: each host reduces its vectors to its leader. The leaders
// reduce and scatter the sums by hosts' blocks, and each leader scatters those of
// its host.
//
//	member     0       1       2        3       4
//	host       a       a       a        b       b
//	reduced    01234 of a               01234 of b
//	leaders    012 of all               34 of all
//	scattered  0       1       2        3       4
//
// Only leaders exchange vectors between hosts. An operator that does not commute
// needs hosts with members that follow one another. Needs blocks that do; leaders
// take m bytes of scratch memory, and as much again if members of a host do not
// follow one another.
//
// Cost: that of Within's reduction for the largest host, that of Among for the
// hosts, and that of Within's scatter. Between H hosts it moves m(H-1)/H bytes at
// best.
//
// (Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting
// Hierarchy in Parallel Computer Networks to Optimize Collective Operation
// Performance", 2000.)
func ReduceScatterTwoLevel(ctx context.Context, c Transport, a *Args) error {
	h, b := a.Hosts, a.reduced()
	leader := h.enter(c, 0)
	sum, err := h.reduceWithin(ctx, a, leader, b.span(a.Send, 0, c.Size()), nil, false)
	if err != nil {
		return err
	}
	var host []byte
	if h.leads() {
		if host, err = h.reduceAmong(ctx, a, b, sum); err != nil {
			return err
		}
	}
	scatter := h.part(a, leader, host, a.Recv)
	if a.RecvCounts != nil {
		scatter.SendCounts, scatter.SendOffsets = h.layOutOwn(b)
	}
	return h.Within(Scatter)(ctx, &h.local, scatter)
}

// reduceAmong returns the blocks of a leader's host of the sum of all hosts' sums.
func (h *Hosts) reduceAmong(ctx context.Context, a *Args, b blocks, sum []byte) ([]byte, error) {
	h.layOut(b)
	if !h.runs {
		byHosts := a.Scratch(len(sum))
		h.toHosts(byHosts, sum, b)
		sum = byHosts
	}
	host := a.Recv
	if !h.alone() { // otherwise sum may be Send, which must not change
		host = h.own(sum)
	}
	among := h.part(a, 0, sum, host)
	among.RecvCounts, among.RecvOffsets = h.counts, h.offsets
	return host, h.Among(ReduceScatter)(ctx, &h.leading, among)
}
