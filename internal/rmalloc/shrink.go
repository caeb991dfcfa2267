package rmalloc

import "fmt"

// Shrink leaves the caller the first n bytes of a block that was not sent. It
// frees the granules behind them.
//
// ErrStale: the caller owns no such block (any more). ErrInvalid: the block is
// shorter.
func (h *Heap) Shrink(a Addr, n int) error {
	i := h.owned(a)
	if i == 0 {
		return stale(a)
	}
	s := &h.holes.spans[i]
	if n < 0 || n > int(s.bytes) {
		return fmt.Errorf("%w: %d bytes of a block of %d", ErrInvalid, n, s.bytes)
	}
	h.payload -= int(s.bytes) - n
	s.bytes = uint32(n)
	if keep := uint32(Granules(n)); keep < s.count {
		h.holes.split(i, keep)
	}
	return nil
}

// split leaves a span its first granules; the rest becomes a hole, or part of the
// one above. A block has at most one hole above it, so enough slots are left.
func (h *Holes) split(i int32, keep uint32) {
	s := &h.spans[i]
	rest, begin := s.count-keep, at(s.addr.granule()+keep, 0)
	s.count = keep
	if above := &h.spans[s.next]; above.hole() {
		above.addr = begin
		above.count += rest
		h.granules += rest
		return
	}
	j := h.slot()
	h.spans[j].addr, h.spans[j].count = begin, rest
	h.link(j, i)
	h.insert(j)
}
