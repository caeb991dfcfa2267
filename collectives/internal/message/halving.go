package message

import "context"

// halving is the common part of Rabenseifner's algorithms. Of its p members each stands for one
// virtual rank. They reduce a vector to shares and put these together again. In round k members 2^k
// apart split the shares that both hold, so that a sum is always one of neighbors, in their order.
//
//	p = 4      hold        after round 0     after round 1
//	virtual 0  abcd        ab.. of 0,1       a... of 0..3
//	virtual 1  abcd        ..cd of 0,1       ..c. of 0..3
//	virtual 2  abcd        ab.. of 2,3       .b.. of 0..3
//	virtual 3  abcd        ..cd of 2,3       ...d of 0..3
type halving struct {
	pairs
	v      int
	b      blocks // p shares
	lo, hi int    // the shares that this member holds
	root   int    // a member that stands for its pair, or -1: the lower ones do
}

// member returns the member that stands for v.
func (h *halving) member(v int) int {
	m := h.pairs.member(v)
	if h.paired(v) && m+1 == h.root {
		return h.root
	}
	return m
}

// reduce combines the vectors of all members' src in acc, each member's share.
// acc may be src; else src keeps its content.
func (h *halving) reduce(ctx context.Context, c Transport, a *Args, src, acc []byte) error {
	h.lo, h.hi = 0, h.p
	for mask := 1; mask < h.p; mask <<= 1 {
		peer, mid, upper := h.member(h.v^mask), (h.lo+h.hi)/2, h.v&mask != 0
		give := h.b.span(src, mid, h.hi)
		if upper {
			give = h.b.span(src, h.lo, mid)
			h.lo = mid
		} else {
			h.hi = mid
		}
		keep := a.behind(h.b.span(acc, h.lo, h.hi), h.b.span(src, h.lo, h.hi))
		keep.Left = upper
		if err := c.ExchangeFold(ctx, peer, give, peer, keep); err != nil {
			return err
		}
		src = acc
	}
	return nil
}

// other returns the shares that the peer of round mask holds, as many as h.
func (h *halving) other(mask int) (lo, hi int) {
	width := h.hi - h.lo
	if h.v&mask == 0 {
		return h.hi, h.hi + width
	}
	return h.lo - width, h.lo
}

// allGather undoes the rounds: peers give each other their shares.
func (h *halving) allGather(ctx context.Context, c Transport, acc []byte) error {
	for mask := h.p >> 1; mask > 0; mask >>= 1 {
		peer := h.member(h.v ^ mask)
		lo, hi := h.other(mask)
		if err := c.Exchange(ctx, peer, h.b.span(acc, h.lo, h.hi), peer, h.b.span(acc, lo, hi)); err != nil {
			return err
		}
		h.lo, h.hi = min(lo, h.lo), max(hi, h.hi)
	}
	return nil
}

// gather undoes the rounds toward the virtual rank root. Of two peers the one on
// its side receives the shares of its peer, which is then done.
func (h *halving) gather(ctx context.Context, c Transport, acc []byte, root int) error {
	for mask := h.p >> 1; mask > 0; mask >>= 1 {
		peer := h.member(h.v ^ mask)
		if h.v&mask != root&mask {
			return c.Send(ctx, peer, h.b.span(acc, h.lo, h.hi))
		}
		lo, hi := h.other(mask)
		if err := c.Recv(ctx, peer, h.b.span(acc, lo, hi)); err != nil {
			return err
		}
		h.lo, h.hi = min(lo, h.lo), max(hi, h.hi)
	}
	return nil
}
