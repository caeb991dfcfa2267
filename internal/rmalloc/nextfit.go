package rmalloc

// NextFit takes the first hole that is large enough, going up from where the
// last allocation left off, and around once. It is the default: in a pipe whose
// blocks are freed about in the order they were allocated, the first hole it
// looks at fits, so it costs the same however many blocks there are.
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

func (NextFit) String() string { return "next-fit" }
