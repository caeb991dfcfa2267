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

// long returns the memory in which the program fills the long block of a slot. The block
// takes the memory that came back last.
func (w *Writer) long(slot, n int) []byte {
	for slot >= len(w.filled) {
		w.filled = append(w.filled, nil)
	}
	if w.filled[slot] != nil {
		return w.filled[slot]
	}
	var mem []byte
	if last := len(w.spare) - 1; last >= 0 {
		mem, w.spare = w.spare[last], w.spare[:last]
	}
	if cap(mem) < n {
		mem = make([]byte, n)
	}
	w.filled[slot] = mem[:n]
	return w.filled[slot]
}

// storeLong stores the first n bytes of the block of a slot at an offset of the heap, and takes its
// memory back. It does so only if the program filled the block elsewhere.
func (w *Writer) storeLong(slot, offset, n int) {
	if slot < len(w.filled) && w.filled[slot] != nil {
		bulk.Store(w.Mem[offset:], w.filled[slot][:n])
	}
	w.giveLong(slot)
}

// giveLong takes back the memory of the long block of a slot, if it has some.
func (w *Writer) giveLong(slot int) {
	if slot < len(w.filled) && w.filled[slot] != nil {
		w.filled[slot], w.spare = nil, append(w.spare, w.filled[slot])
	}
}

// Fill stores src in a block of as many bytes. The caller has not called BlockMem for it, and
// calls Write next.
func (w *Writer) Fill(a rmalloc.Addr, src []byte) {
	switch n := len(src); {
	case n <= w.Small:
		copy(w.Line(a), src)
	case w.Direct:
		bulk.Store(w.Mem[a.Offset():], src)
	default:
		copy(w.Mem[a.Offset():], src)
	}
}
