package rmalloc

// Holes are the free ranges of a heap in address order, no two of them adjacent.
// A Policy gets them.
//
// Blocks and holes together are a circular list in address order, so that Free
// finds a block's neighbors at once (boundary tags: Knuth, TAOCP vol. 1, section
// 2.5, algorithm C). Slot 0, which is neither, closes the circle. It is the head
// of the list of holes, too, which links holes only.
type Holes struct {
	table
	rover    Hole
	number   int
	granules uint32
}

// A Hole names one free range until the heap changes.
type Hole int32

// NoHole follows the last hole.
const NoHole Hole = 0

// newHoles returns the holes of a heap without blocks: one.
func newHoles(granules uint32, blocks int) Holes {
	h := Holes{table: newTable(2*blocks + 2)} // the head, the blocks, and a hole around each
	h.spans[0].addr = 1                       // no hole, so that no span coalesces with it
	i := h.slot()
	h.spans[i].count = granules
	h.link(i, 0)
	h.insert(i)
	return h
}

// First returns the lowest hole, or NoHole.
func (h *Holes) First() Hole { return Hole(h.spans[0].after) }

// Next returns the hole above, or NoHole.
func (h *Holes) Next(hole Hole) Hole { return Hole(h.spans[hole].after) }

// Rover returns the hole that remained of the one that the last allocation took
// from. If none remained, it returns the next hole above, and NoHole if there was
// none above. A rover that coalesces with its neighbors stays the rover.
func (h *Holes) Rover() Hole { return h.rover }

// Count returns the size of a hole, in granules.
func (h *Holes) Count(hole Hole) int { return int(h.spans[hole].count) }

// Offset returns the offset of a hole in the heap, in granules.
func (h *Holes) Offset(hole Hole) int { return int(h.spans[hole].addr.granule()) }

// Len returns the number of holes.
func (h *Holes) Len() int { return h.number }

// Granules returns the size of all holes together.
func (h *Holes) Granules() int { return int(h.granules) }

// fits reports whether hole is a hole of at least count granules.
func (h *Holes) fits(hole Hole, count int) bool {
	return hole > 0 && int(hole) < len(h.spans) && h.spans[hole].hole() && h.Count(hole) >= count
}

// cut makes the lower end of a hole a span that is no hole and returns it.
func (h *Holes) cut(hole Hole, count uint32) int32 {
	h.granules -= count
	from := int32(hole)
	if h.spans[from].count == count {
		h.rover = h.Next(hole)
		h.unfile(from)
		return from
	}
	i := h.slot()
	rest, s := &h.spans[from], &h.spans[i]
	s.addr, s.count = rest.addr, count
	rest.addr += Addr(count) << generationBits
	rest.count -= count
	h.link(i, rest.prev)
	h.rover = hole
	return i
}

// insert makes span i a hole, in one piece with the holes next to it.
func (h *Holes) insert(i int32) {
	s := &h.spans[i]
	s.addr = at(s.addr.granule(), 0)
	h.granules += s.count
	below, above := s.prev, s.next
	switch {
	case h.spans[below].hole():
		h.spans[below].count += s.count
		h.unlink(i)
		if h.spans[above].hole() {
			h.spans[below].count += h.spans[above].count
			h.unfile(above)
			h.unlink(above)
			if h.rover == Hole(above) {
				h.rover = Hole(below)
			}
		}
	case h.spans[above].hole():
		h.spans[above].addr = s.addr
		h.spans[above].count += s.count
		h.unlink(i)
	default:
		h.file(i, h.holeBelow(i))
	}
}

// holeBelow returns the hole below span i, or 0. Two walks meet: one down from
// the span, one up through the holes. With n blocks, freed at random, the
// shorter of the two takes about sqrt(n) steps.
func (h *Holes) holeBelow(i int32) int32 {
	here := h.spans[i].addr
	down, up := h.spans[i].prev, h.spans[0].after
	for {
		if down == 0 || h.spans[down].hole() {
			return down
		}
		if up == 0 || h.spans[up].addr > here {
			return h.spans[up].before
		}
		down, up = h.spans[down].prev, h.spans[up].after
	}
}

// file enters span i into the list of holes, after hole below.
func (h *Holes) file(i, below int32) {
	above := h.spans[below].after
	h.spans[i].before, h.spans[i].after = below, above
	h.spans[below].after, h.spans[above].before = i, i
	h.number++
}

// unfile takes span i out of the list of holes.
func (h *Holes) unfile(i int32) {
	s := &h.spans[i]
	h.spans[s.before].after, h.spans[s.after].before = s.after, s.before
	h.number--
}

// link enters span i into address order, after span below.
func (h *Holes) link(i, below int32) {
	above := h.spans[below].next
	h.spans[i].prev, h.spans[i].next = below, above
	h.spans[below].next, h.spans[above].prev = i, i
}

// unlink takes span i out of address order and gives its slot back.
func (h *Holes) unlink(i int32) {
	s := &h.spans[i]
	h.spans[s.prev].next, h.spans[s.next].prev = s.next, s.prev
	h.drop(i)
}
