package rmalloc

import "math"

// BestFit takes the smallest hole that is large enough, the lowest of equal ones.
// It keeps large holes whole for large blocks, and leaves many tiny holes.
//
// Source: Knuth, TAOCP vol. 1, section 2.5; slide 19.
type BestFit struct{}

// Choose implements Policy. It looks at all holes unless one fits exactly.
func (BestFit) Choose(holes *Holes, count int) Hole {
	best, size := NoHole, math.MaxInt
	for h := holes.First(); h != NoHole; h = holes.Next(h) {
		c := holes.Count(h)
		if c == count {
			return h
		}
		if c > count && c < size {
			best, size = h, c
		}
	}
	return best
}

// String returns the name.
func (BestFit) String() string { return "best-fit" }
