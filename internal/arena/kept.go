package arena

import "slices"

// keptMost bounds the bytes of freed blocks that stay committed. The memory of a member of a team fits, with what it
// has for short messages of 31 others.
const keptMost = 256 << 10

// kept lists freed blocks whose pages stay. The system takes pages from all processes that map them, and
// gives new ones to each of them: together that takes longer than all else in the life of a small block.
type kept struct {
	blocks []keptBlock
	bytes  int64 // committed
}

// A keptBlock is a block of which the first now bytes are committed.
type keptBlock struct {
	span
	now int64
}

// add keeps a block if there is room.
func (k *kept) add(b keptBlock) bool {
	if k.bytes+b.now > keptMost {
		return false
	}
	k.blocks, k.bytes = append(k.blocks, b), k.bytes+b.now
	return true
}

// take returns a block of n bytes of which the first now are committed, and whether there was one.
func (k *kept) take(n, now int64) (off int64, ok bool) {
	for i, b := range k.blocks {
		if b.n == n && b.now == now {
			k.blocks, k.bytes = slices.Delete(k.blocks, i, i+1), k.bytes-now
			return b.off, true
		}
	}
	return 0, false
}

// Keep is Free for a block of which few bytes occupy memory, if the rank soon allocates another one like it. That memory
// may stay with the arena. A block of AllocPart is kept unless more of it was committed.
func (a *Arena) Keep(b Block) error {
	if a.memfd == nil || b.grown != nil && b.grown.Load() || !a.keep(&b) {
		return a.Free(b)
	}
	return b.extents.giveBack()
}

// keep adds a block to those kept, if there is room.
func (a *Arena) keep(b *Block) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || !a.kept.add(keptBlock{span{b.off, b.n}, b.now}) {
		return false
	}
	a.used -= b.n
	return true
}

// dropKept gives the memory of all kept blocks back, up to the first that fails: that one and those behind it stay
// kept. Precondition: mu is held.
func (a *Arena) dropKept() error {
	for len(a.kept.blocks) > 0 {
		b := a.kept.blocks[0]
		if err := a.memfd.Punch(b.off, b.now); err != nil {
			return err
		}
		a.kept.take(b.n, b.now) // the first such block is b
		a.ranges.give(b.off, b.n)
	}
	return nil
}
