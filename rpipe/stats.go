package rpipe

// WriterStats tell what a writer did and how full the pipe's heap is, as its
// shadow has it.
type WriterStats struct {
	Written     uint64 // blocks
	Bytes       uint64 // in them
	Tags        uint64 // ranges of freed memory that were taken in
	MemoryWaits uint64 // Allocs that waited for the reader to free
	WidthWaits  uint64 // Writes that waited for the reader to read
}

// ReaderStats tell what a reader did.
type ReaderStats struct {
	Read          uint64 // blocks
	Announcements uint64 // remote writes that told the writer what was read and freed
}
