package message

import "context"

// AllToAllTwoLevel: each host gathers all its blocks at its leader. The leaders exchange the blocks
// between their hosts, in one message for each pair of hosts. Each leader scatters the blocks that
// it receives.
//
//	host a: 0 1    host b: 2 3
//	gathered    00 01 02 03 10 11 12 13      20 21 22 23 30 31 32 33
//	exchanged   02 03 12 13            <-->  20 21 30 31
//	scattered   00 10 20 30, 01 11 21 31     02 12 22 32, 03 13 23 33
//
// Needs blocks of one length; leaders of s members take 2sm bytes of scratch
// memory. It serves short blocks: a host's members send one message to another
// host in place of one from each to each. But every block is copied four times.
//
// Cost: that of Within for the largest host, that of Among for the hosts, and
// that of Within again. Between H hosts it has H-1 rounds at most, and the bytes
// of all blocks.
//
// (Träff and Rougier, "MPI Collectives and Datatypes for Hierarchical All-to-all
// Communication", 2014.)
func AllToAllTwoLevel(ctx context.Context, c Transport, a *Args) error {
	h := a.Hosts
	leader := h.enter(c, 0)
	var in, out []byte
	if h.leads() {
		size := h.local.Size() * len(a.Send)
		in, out = a.Scratch(size), a.Scratch(size)
	}
	if err := h.Within(Gather)(ctx, &h.local, h.part(a, leader, a.Send, in)); err != nil {
		return err
	}
	if h.leads() {
		b, _ := a.toAll(c.Size())
		h.pack(out, in, b)
		among := h.part(a, 0, out, in)
		among.SendCounts, among.SendOffsets = h.counts, h.offsets
		among.RecvCounts, among.RecvOffsets = h.counts, h.offsets // a host sends as much as it receives
		if err := h.Among(AllToAll)(ctx, &h.leading, among); err != nil {
			return err
		}
		h.unpack(out, in, b)
	}
	return h.Within(Scatter)(ctx, &h.local, h.part(a, leader, out, a.Recv))
}

// pack sorts the blocks of a host's members by their destination host, and stores
// the bytes for each.
func (h *Hosts) pack(out, in []byte, b blocks) {
	at, all := 0, alike(len(in)/h.local.Size(), nil, nil)
	for host, group := range h.groups {
		h.offsets[host] = at
		for from := range h.local.members {
			sent := all.of(in, from)
			for _, to := range group {
				at += copy(out[at:], b.of(sent, to))
			}
		}
		h.counts[host] = at - h.offsets[host]
	}
}

// unpack sorts the blocks of all hosts by their destination member.
func (h *Hosts) unpack(out, in []byte, b blocks) {
	all := alike(len(in)/h.local.Size(), nil, nil)
	for _, group := range h.groups {
		for _, from := range group {
			for to := range h.local.members {
				in = in[copy(b.of(all.of(out, to), from), in):]
			}
		}
	}
}
