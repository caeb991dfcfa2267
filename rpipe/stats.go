package rpipe

import "github.com/gopgas/gopgas/rpipe/internal/pipe"

// WriterStats counts what a writer did, and shows how full the pipe's heap is in its shadow.
// Memory that the reader has freed counts as taken until the writer has learned of that.
type WriterStats = pipe.WriterStats

// HeapStats are the occupancy of a heap; Fragmentation is a number from 0, all
// that is free lies in one piece, toward 1.
type HeapStats = pipe.HeapStats

// ReaderStats counts what a reader did.
type ReaderStats = pipe.ReaderStats
