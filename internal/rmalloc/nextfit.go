package rmalloc

// NextFit takes the first hole that is large enough, going up from the place of
// the last allocation, and around once. It is the default. If a pipe's blocks are
// freed about in the order of their allocation, the first hole fits. Then the
// cost does not grow with the number of blocks.
//
// Source: Knuth, TAOCP vol. 1, section 2.5, exercise 6 (the roving pointer); slide
// 18.
type NextFit struct{}

// Choose implements Policy. It looks at each hole once at most.
func (NextFit) Choose(holes *Holes, count int) Hole {
	rover := holes.Rover()
	for h := rover; h != NoHole; h = holes.Next(h) {
		if holes.Count(h) >= count {
			return h
		}
	}
	for h := holes.First(); h != rover; h = holes.Next(h) {
		if holes.Count(h) >= count {
			return h
		}
	}
	return NoHole
}

// String returns the name.
func (NextFit) String() string { return "next-fit" }
