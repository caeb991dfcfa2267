package pipe

import (
	"github.com/gopgas/gopgas/internal/bulk"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// A mapped reader's core holds the lines of its heap. A program that fills a long block
// there waits for each of them. So it fills such a block in memory of the writer's own,
// which stays in the caches of the writer's core. Write then stores the block in the heap by
// whole lines, which are not fetched (bulk.Store).

// These are the lengths of long blocks. The copy of a shorter one costs as much as it saves. A
// longer one leaves the caches, and Go's copy goes around them.
const (
	longFrom = 4 << 10
	longMost = 512 << 10
)

// isLong reports whether the program fills a block of n bytes in memory of the writer's own.
func (w *Writer) isLong(n int) bool {
	return n >= longFrom && n <= longMost && w.Direct && !w.Spec.pull
}

// long returns the memory in which the program fills the long block of a slot.
func (w *Writer) long(slot, n int) []byte {
	mem := w.filled.at(slot)
	if cap(*mem) < n {
		*mem = make([]byte, n)
	}
	*mem = (*mem)[:n]
	return *mem
}

// storeLong stores the first n bytes of the block of a slot at an offset of the heap, and takes its
// memory back. It does so only if the program filled the block elsewhere.
func (w *Writer) storeLong(slot, offset, n int) {
	if w.filled.has(slot) {
		bulk.Store(w.Mem[offset:], (*w.filled.at(slot))[:n])
		w.filled.give(slot)
	}
}

// Fill stores src in a block of as many bytes. The caller has not called BlockMem for it, and
// calls Write next.
func (w *Writer) Fill(a rmalloc.Addr, src []byte) {
	switch n := len(src); {
	case n <= w.Small:
		copy(w.lines.at(w.Heap.Slot(a))[:], src)
	case w.Direct:
		bulk.Store(w.Mem[a.Offset():], src)
	default:
		copy(w.Mem[a.Offset():], src)
	}
}
