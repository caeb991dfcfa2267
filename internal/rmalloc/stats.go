package rmalloc

// Stats are a heap's occupancy.
type Stats struct {
	Size     int // bytes of the heap
	Blocks   int // live: allocated, or sent and not released
	Payload  int // bytes that the live blocks were asked for
	Used     int // bytes that they take, in whole granules
	Holes    int // free ranges
	Largest  int // bytes of the largest one
	Overhead int // bytes of the books themselves
}

// Free returns the bytes that no block takes.
func (s Stats) Free() int { return s.Size - s.Used }

// Fragmentation returns 1 - Largest/Free: 0 when what is free lies in one piece
// (or nothing is free), near 1 when it lies in crumbs.
func (s Stats) Fragmentation() float64 {
	if s.Free() == 0 {
		return 0
	}
	return 1 - float64(s.Largest)/float64(s.Free())
}

// Stats returns how full the heap is. It looks at each hole.
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

// Config returns what the heap was made of, with the defaults filled in.
func (h *Heap) Config() Config { return h.config }
