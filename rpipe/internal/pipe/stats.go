package pipe

import "github.com/gopgas/gopgas/internal/rmalloc"

// WriterStats counts what a writer did, and shows how full the pipe's heap is in its shadow.
// Memory that the reader has freed counts as taken until the writer has learned of that.
type WriterStats struct {
	Written     uint64 // blocks
	Bytes       uint64 // in them
	Tags        uint64 // ranges of freed memory that were taken in
	MemoryWaits uint64 // Allocs that waited for the reader to free
	WidthWaits  uint64 // Writes that waited for the reader to read
	InFlight    int    // blocks written and not known to be read
	Heap        HeapStats
}

// waitsFor counts a wait.
func (s *WriterStats) waitsFor(what uint64) {
	if what == WantsMemory {
		s.MemoryWaits++
	} else {
		s.WidthWaits++
	}
}

// HeapStats are the occupancy of a heap; Fragmentation is a number from 0, all
// that is free lies in one piece, towards 1.
type HeapStats = rmalloc.Stats

// ReaderStats counts what a reader did.
type ReaderStats struct {
	Read          uint64 // blocks
	Held          int    // blocks that were read and not freed
	Announcements uint64 // remote writes that told the writer of blocks read and freed
}

// Stats returns the counts of this end.
func (w *Writer) Stats() WriterStats {
	s := w.count
	s.Heap = w.Heap.Stats()
	if !w.Closed.Load() {
		// The reader may have read a block that is not counted yet.
		s.InFlight = max(int(int32(uint32(s.Written)-uint32(w.Flag(CreditFlag)))), 0)
	}
	return s
}

// Stats returns the counts of this end.
func (r *Reader) Stats() ReaderStats {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return ReaderStats{Read: r.read.Load(), Held: r.held(), Announcements: r.writes}
}
