package rmalloc

import "fmt"

// Held are the blocks that a reader was notified of and has not freed. They are
// the reader's own books, which refuse a stale address at the end that uses it.
// The writer says where blocks lie, so Take trusts nothing.
type Held struct {
	table
	generation generation
	total      int
	blocks     int
	live       int
}

// NewHeld returns empty books of a heap of size bytes, for at most blocks blocks
// at a time. They allocate as they grow.
func NewHeld(size, blocks int) (*Held, error) {
	c, err := Config{Size: size, Blocks: blocks}.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Held{
		table:      newTable(c.Blocks + 1),
		generation: firstGeneration(),
		total:      size / Granule,
		blocks:     c.Blocks,
	}, nil
}

// Take is Name and Enter in one.
func (h *Held) Take(offset, length int) (Addr, error) {
	a, err := h.Name(offset, length)
	if err == nil {
		err = h.Enter(a, length)
	}
	return a, err
}

// Name gives a block of length bytes that begins at granule offset an address, by
// which Enter makes it known. It touches no state of the other methods: the
// goroutine that is notified of blocks needs no lock for it. ErrCorrupt: the block
// reaches beyond the heap.
func (h *Held) Name(offset, length int) (Addr, error) {
	if offset < 0 || offset >= h.total || length < 0 || length > (h.total-offset)*Granule || length > MaxBlock {
		return 0, fmt.Errorf("%w: block of %d bytes at granule %d of %d", ErrCorrupt, length, offset, h.total)
	}
	h.generation = h.generation.next()
	return at(uint32(offset), h.generation), nil
}

// Enter records a block that Name has named with the same length. ErrCorrupt: the
// books have a block that begins there, or as many as the heap may have. (If a
// block begins within another, Pending finds it once both have been freed.)
func (h *Held) Enter(a Addr, length int) error {
	if h.find(a.granule()) != 0 {
		return fmt.Errorf("%w: another block at granule %d, which is in use", ErrCorrupt, a.granule())
	}
	if h.live == h.blocks {
		return fmt.Errorf("%w: more than %d blocks at a time", ErrCorrupt, h.blocks)
	}
	i := h.slot()
	h.spans[i] = span{addr: a, count: uint32(Granules(length)), bytes: uint32(length)}
	h.enter(i)
	h.live++
	return nil
}

// Range returns the offset of a block in the heap and its length, in bytes.
// ErrStale: the reader holds no such block (any more).
func (h *Held) Range(a Addr) (offset, length int, err error) {
	i := h.lookup(a)
	if i == 0 {
		return 0, 0, stale(a)
	}
	return a.Offset(), int(h.spans[i].bytes), nil
}

// Free takes a block off the books and returns its granules, for Pending or a
// tag. ErrStale: the reader holds no such block (any more).
func (h *Held) Free(a Addr) (Range, error) {
	i := h.lookup(a)
	if i == 0 {
		return Range{}, stale(a)
	}
	r := Range{int(a.granule()), int(h.spans[i].count)}
	h.remove(i)
	h.drop(i)
	h.live--
	return r, nil
}

// Slot returns a number of a held block, from 1, that no other has at the same time. 0: the
// reader holds no such block.
func (h *Held) Slot(a Addr) int { return int(h.lookup(a)) }

// Len returns the number of held blocks.
func (h *Held) Len() int { return h.live }
