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

// chunkLines is how many lines of the writer's are made at once.
const chunkLines = 64

// A chunk is so many lines.
type chunk [chunkLines]line

// Line returns the memory in which the program fills a small block.
func (w *Writer) Line(a rmalloc.Addr) []byte { return w.lineOf(w.Heap.Slot(a))[:] }

// lineOf returns the line of a slot.
func (w *Writer) lineOf(slot int) *line {
	for slot/chunkLines >= len(w.chunks) {
		w.chunks = append(w.chunks, new(chunk))
	}
	return &w.chunks[slot/chunkLines][slot%chunkLines]
}

// BlockMem returns the memory in which the program fills a block of n bytes. It begins with
// the block.
func (w *Writer) BlockMem(a rmalloc.Addr, n int) []byte {
	if n > w.Small {
		return w.Mem[a.Offset():]
	}
	return w.Line(a)
}

// pack copies n bytes of the small block of a slot into the entry of the next notification.
func (w *Writer) pack(slot, n int) {
	copyLine(atomics.Bytes(w.near.flags[w.place()+1:]), w.lineOf(slot)[:], n)
}

// copyLine copies n bytes. Precondition: both have room for a word.
func copyLine(dst, src []byte, n int) {
	if n <= 8 {
		native.PutUint64(dst, native.Uint64(src))
		return
	}
	copy(dst[:n], src)
}
