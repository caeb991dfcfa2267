package rmalloc

// Stats are a heap's occupancy.
type Stats struct {
	Size     int // bytes of the heap
	Blocks   int // live: allocated, or sent and not released
	Payload  int // bytes that Alloc was asked for, in live blocks
	Used     int // bytes of live blocks, in whole granules
	Holes    int // free ranges
	Largest  int // bytes of the largest one
	Overhead int // bytes of the books themselves
}

// Free returns the bytes outside of blocks.
func (s Stats) Free() int { return s.Size - s.Used }

// Fragmentation returns 1 - Largest/Free: 0 if the free memory lies in one piece
// (or none is free), near 1 if it lies in tiny holes.
func (s Stats) Fragmentation() float64 {
	if s.Free() == 0 {
		return 0
	}
	return 1 - float64(s.Largest)/float64(s.Free())
}

// Stats returns the heap's occupancy. It reads each hole.
func (h *Heap) Stats() Stats {
	s := Stats{
		Size:     h.config.Size,
		Blocks:   h.live,
		Payload:  h.payload,
		Used:     h.config.Size - h.holes.Granules()*Granule,
		Holes:    h.holes.Len(),
		Overhead: h.holes.memory(),
	}
	for hole := h.holes.First(); hole != NoHole; hole = h.holes.Next(hole) {
		s.Largest = max(s.Largest, h.holes.Count(hole)*Granule)
	}
	return s
}

// Config returns the heap's Config, with the defaults filled in.
func (h *Heap) Config() Config { return h.config }
