package rmalloc

import "fmt"

// DefaultBlocks is the largest number of blocks in a heap whose Config gives
// none.
const DefaultBlocks = 1024

// Config describes a heap.
type Config struct {
	Size   int    // bytes, a multiple of Granule, at most MaxHeap
	Blocks int    // live blocks at most; 0 is DefaultBlocks
	Policy Policy // nil is NextFit
}

// withDefaults returns the settings that New uses, or why they cannot be.
func (c Config) withDefaults() (Config, error) {
	if c.Size < Granule || c.Size > MaxHeap || c.Size%Granule != 0 {
		return c, fmt.Errorf("%w: heap of %d bytes; give a multiple of %d up to %d", ErrInvalid, c.Size, Granule, MaxHeap)
	}
	if c.Blocks < 0 {
		return c, fmt.Errorf("%w: %d blocks; give a positive number, or 0 for %d", ErrInvalid, c.Blocks, DefaultBlocks)
	}
	if c.Blocks == 0 {
		c.Blocks = DefaultBlocks
	}
	c.Blocks = min(c.Blocks, c.Size/Granule)
	if c.Policy == nil {
		c.Policy = NextFit{}
	}
	return c, nil
}

// A Heap is the shadow of a heap: it knows the granules of each block and the end
// that owns it. It does not have the memory itself. One goroutine at a time uses
// it.
type Heap struct {
	holes      Holes
	config     Config
	roving     bool // the policy takes the rover first, without a search
	generation generation
	live       int
	payload    int
	latest     int32 // the slot of the block that was allocated last
}

// New returns the shadow of a heap without blocks. ErrInvalid names the field
// that is out of bounds.
func New(c Config) (*Heap, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	_, roving := c.Policy.(NextFit)
	return &Heap{
		holes:      newHoles(uint32(c.Size/Granule), c.Blocks),
		config:     c,
		roving:     roving,
		generation: firstGeneration(),
	}, nil
}

// Alloc takes a block of n bytes, which its caller owns until Free or Send. A
// block of 0 bytes takes a granule too.
//
// ErrFull: no room, or no block, is left until Free or Release. ErrTooLarge: n
// never fits. ErrInvalid: n is negative.
func (h *Heap) Alloc(n int) (Addr, error) {
	if err := h.Fits(n); err != nil {
		return 0, err
	}
	count := Granules(n)
	if h.live == h.config.Blocks || count > h.holes.Granules() {
		return 0, ErrFull
	}
	hole := h.holes.rover
	if !h.roving || !h.holes.fits(hole, count) {
		var err error
		if hole, err = h.choose(count); err != nil {
			return 0, err
		}
	}
	i := h.holes.cut(hole, uint32(count))
	h.generation = h.generation.next()
	s := &h.holes.spans[i]
	s.addr |= Addr(h.generation)
	s.bytes = uint32(n)
	h.holes.enter(i)
	h.live++
	h.payload += n
	h.latest = i
	return s.addr, nil
}

// Fits returns Alloc's error for a block that no heap of this size holds, nil for all others.
func (h *Heap) Fits(n int) error {
	if n < 0 || n > h.config.Size || n > MaxBlock {
		return h.refuse(n)
	}
	return nil
}

// choose returns a hole of the policy's choice.
func (h *Heap) choose(count int) (Hole, error) {
	hole := h.config.Policy.Choose(&h.holes, count)
	switch {
	case hole == NoHole:
		return NoHole, ErrFull
	case !h.holes.fits(hole, count):
		return NoHole, fmt.Errorf("%w: %v chose %d for %d granules", ErrPolicy, h.config.Policy, hole, count)
	}
	return hole, nil
}

// Live returns the number of blocks.
func (h *Heap) Live() int { return h.live }

// refuse returns the error of a block of n bytes that no heap of this size can hold.
func (h *Heap) refuse(n int) error {
	if n < 0 {
		return fmt.Errorf("%w: block of %d bytes", ErrInvalid, n)
	}
	return fmt.Errorf("%w: block of %d bytes, heap of %d; open with a larger heap (blocks end at %d)",
		ErrTooLarge, n, h.config.Size, MaxBlock)
}

// Range returns the offset of a block in the heap and its length, in bytes.
// ErrStale: the caller owns no such block (any more).
func (h *Heap) Range(a Addr) (offset, length int, err error) {
	i := h.owned(a)
	if i == 0 {
		return 0, 0, stale(a)
	}
	return a.Offset(), int(h.holes.spans[i].bytes), nil
}

// Send gives a block to the reader: from then on only Release ends it. ErrStale:
// the caller owns no such block (any more).
func (h *Heap) Send(a Addr) error {
	i := h.owned(a)
	if i == 0 {
		return stale(a)
	}
	h.holes.spans[i].bytes |= sentBit
	return nil
}

// Hand is Slot, Range and Send in one. For an address that is not good the slot is 0, and
// Hand does nothing.
func (h *Heap) Hand(a Addr) (slot, length int) {
	i := h.owned(a)
	if i == 0 {
		return 0, 0
	}
	s := &h.holes.spans[i]
	length = int(s.bytes)
	s.bytes |= sentBit
	return int(i), length
}

// Free gives back a block that was not sent. ErrStale: the caller owns no such
// block (any more).
func (h *Heap) Free(a Addr) error {
	i := h.owned(a)
	if i == 0 {
		return stale(a)
	}
	h.forget(i)
	h.holes.insert(i)
	return nil
}

// Release gives back the sent blocks in count granules from granule offset on,
// named by a tag of the reader. They may be several neighbors, and must be whole;
// otherwise Release returns ErrCorrupt and changes nothing.
func (h *Heap) Release(offset, count int) error {
	first, blocks := h.sent(offset, count)
	if blocks == 0 {
		return fmt.Errorf("%w: %d granules from %d on are not whole blocks that were sent", ErrCorrupt, count, offset)
	}
	h.forget(first)
	for ; blocks > 1; blocks-- {
		i := h.holes.spans[first].next
		h.forget(i)
		h.holes.unlink(i)
	}
	h.holes.spans[first].count = uint32(count)
	h.holes.insert(first)
	return nil
}

// sent returns the first of the sent blocks that together are exactly the range,
// and their number, or 0. It trusts neither number. Each step uses up granules of
// the range, and behind the last block comes slot 0, which was never sent.
func (h *Heap) sent(offset, count int) (first int32, blocks int) {
	if offset < 0 || offset >= h.config.Size/Granule {
		return 0, 0
	}
	first = h.holes.find(uint32(offset))
	for i := first; ; i = h.holes.spans[i].next {
		s := &h.holes.spans[i]
		if s.bytes&sentBit == 0 || int(s.count) > count {
			return 0, 0
		}
		blocks++
		if count -= int(s.count); count == 0 {
			return first, blocks
		}
	}
}

// Slot returns a number of a block that the caller owns, from 1, that no other block has at
// the same time. Numbers are as small as the blocks are few. 0: the caller owns no such block.
func (h *Heap) Slot(a Addr) int { return int(h.owned(a)) }

// owned returns the block of that address if it was not sent, else 0.
func (h *Heap) owned(a Addr) int32 {
	i := h.latest
	if h.holes.spans[i].addr != a {
		i = h.holes.lookup(a)
	}
	if h.holes.spans[i].bytes&sentBit != 0 {
		return 0
	}
	return i
}

// forget takes block i off the books; its granules are not yet a hole.
func (h *Heap) forget(i int32) {
	h.holes.remove(i)
	if h.latest == i {
		h.latest = 0
	}
	s := &h.holes.spans[i]
	h.live--
	h.payload -= int(s.bytes &^ sentBit)
	s.bytes = 0
}

func stale(a Addr) error { return fmt.Errorf("%w: %v", ErrStale, a) }
