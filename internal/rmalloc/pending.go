package rmalloc

import (
	"fmt"
	"slices"
)

// A Range is a piece of a heap, in granules.
type Range struct {
	Offset, Count int
}

func (r Range) end() int { return r.Offset + r.Count }

// Pending are the freed ranges that were not yet announced, in address order.
// Neighbors become one, so that the tags of many blocks are few words: "coalesce
// tags from a sorted free list" (slide 22).
//
// Insert costs a binary search and a move of the ranges above. Blocks freed in
// order are appended, and mostly join the last range.
type Pending struct {
	ranges   []Range
	limit    int
	granules int
	blocks   int
}

// NewPending returns an empty list of at most limit ranges. It allocates as it
// grows.
func NewPending(limit int) *Pending { return &Pending{limit: limit} }

// Insert adds a freed block: count granules from granule offset on.
//
// ErrCorrupt: a part of it is pending already, so two blocks overlapped. ErrFull:
// the list has limit ranges, and the block is no neighbor of one; Drain first.
// ErrInvalid: no heap has such granules. After an error the list is unchanged.
func (p *Pending) Insert(offset, count int) error {
	if offset < 0 || count <= 0 || count > MaxGranules || offset > MaxGranules-count {
		return fmt.Errorf("%w: freed range of %d granules from %d on", ErrInvalid, count, offset)
	}
	r := Range{offset, count}
	i := p.above(offset)
	if i > 0 && p.ranges[i-1].end() > offset || i < len(p.ranges) && p.ranges[i].Offset < r.end() {
		return fmt.Errorf("%w: granules %d to %d are freed twice", ErrCorrupt, offset, r.end()-1)
	}
	joinsBelow := i > 0 && p.ranges[i-1].end() == offset
	joinsAbove := i < len(p.ranges) && p.ranges[i].Offset == r.end()
	switch {
	case joinsBelow && joinsAbove:
		p.ranges[i-1].Count += count + p.ranges[i].Count
		p.ranges = slices.Delete(p.ranges, i, i+1)
	case joinsBelow:
		p.ranges[i-1].Count += count
	case joinsAbove:
		p.ranges[i] = Range{offset, count + p.ranges[i].Count}
	case len(p.ranges) == p.limit:
		return ErrFull
	default:
		p.ranges = slices.Insert(p.ranges, i, r)
	}
	p.granules += count
	p.blocks++
	return nil
}

// above returns the index of the first range that begins above offset.
func (p *Pending) above(offset int) int {
	lo, hi := 0, len(p.ranges)
	if hi > 0 && p.ranges[hi-1].Offset <= offset {
		return hi
	}
	for lo < hi {
		if mid := (lo + hi) / 2; p.ranges[mid].Offset <= offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Len returns the number of ranges.
func (p *Pending) Len() int { return len(p.ranges) }

// Granules returns the size of all ranges together.
func (p *Pending) Granules() int { return p.granules }

// Blocks returns the number of blocks inserted since the last Drain.
func (p *Pending) Blocks() int { return p.blocks }

// Drain appends the ranges to dst in address order, and empties the list.
func (p *Pending) Drain(dst []Range) []Range {
	dst = append(dst, p.ranges...)
	p.ranges, p.granules, p.blocks = p.ranges[:0], 0, 0
	return dst
}
