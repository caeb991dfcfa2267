package pipe

import (
	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// The bytes of a small block travel in the entry of its notification: one cache line instead
// of two. The writer fills such a block in memory of its own, and Write copies it into the
// entry, ahead of the flag. Read copies it into a line of its own: the reader may hold the
// block while the ring goes round. In both heaps the block has a place like others, where no
// bytes lie.

// A line has room for a small block.
type line [lineSize]byte

// BlockMem returns the memory in which the program fills a block of n bytes. It begins with
// the block.
func (w *Writer) BlockMem(a rmalloc.Addr, n int) []byte {
	switch {
	case n <= w.Small:
		return w.lines.at(w.Heap.Slot(a))[:]
	case w.isLong(n):
		return w.long(w.Heap.Slot(a), n)
	}
	return w.Mem[a.Offset():]
}

// pack copies n bytes of the small block of a slot into the entry of the next notification.
func (w *Writer) pack(slot, n int) {
	copyLine(atomics.Bytes(w.near.flags[w.place()+1:]), w.lines.at(slot)[:], n)
}

// copyLine copies n bytes. Precondition: both have room for a word.
func copyLine(dst, src []byte, n int) {
	if n <= 8 {
		native.PutUint64(dst, native.Uint64(src))
		return
	}
	copy(dst[:n], src)
}
