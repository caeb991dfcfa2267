package arena

// keptMost bounds the bytes of freed blocks that stay committed. Four teams fit.
const keptMost = 64 << 10

// kept lists freed blocks whose pages stay. The system takes pages from all processes that map them, and
// gives new ones to each of them: together that takes longer than all else in the life of a small block.
type kept struct {
	blocks []span
	bytes  int64
}

// add keeps a block if there is room.
func (k *kept) add(s span) bool {
	if k.bytes+s.n > keptMost {
		return false
	}
	k.blocks, k.bytes = append(k.blocks, s), k.bytes+s.n
	return true
}

// take returns a block of n bytes, and whether there was one.
func (k *kept) take(n int64) (off int64, ok bool) {
	for i, s := range k.blocks {
		if s.n == n {
			k.blocks, k.bytes = append(k.blocks[:i], k.blocks[i+1:]...), k.bytes-n
			return s.off, true
		}
	}
	return 0, false
}

// Keep is Free for a small block of Alloc, if the rank soon allocates another one of that size. The block's
// memory may stay with the arena.
func (a *Arena) Keep(b Block) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.memfd == nil || a.closed || !a.kept.add(span{b.off, b.n}) {
		return a.free(b)
	}
	a.used -= b.n
	return nil
}

// reuse returns a kept block of n bytes, which it clears. Precondition: mu is held.
func (a *Arena) reuse(n int64) (off int64, ok bool) {
	if off, ok = a.kept.take(n); ok {
		clear(a.memfd.Bytes()[off : off+n])
	}
	return off, ok
}

// dropKept gives the memory of all kept blocks back, up to the first that fails: that one and those behind it stay
// kept. Precondition: mu is held.
func (a *Arena) dropKept() error {
	for len(a.kept.blocks) > 0 {
		s := a.kept.blocks[0]
		if err := a.memfd.Punch(s.off, s.n); err != nil {
			return err
		}
		a.kept.take(s.n) // the first block of that size is s
		a.ranges.give(s.off, s.n)
	}
	return nil
}
