package rmalloc

// FirstFit takes the lowest hole that is large enough. Blocks gather at the
// heap's start, which keeps large holes further up and the touched memory small.
// Each choice searches the tiny holes at the start again.
//
// Source: Knuth, TAOCP vol. 1, section 2.5, algorithm A; slide 15.
type FirstFit struct{}

// Choose implements Policy. It looks at the holes below the one it takes.
func (FirstFit) Choose(holes *Holes, count int) Hole {
	for h := holes.First(); h != NoHole; h = holes.Next(h) {
		if holes.Count(h) >= count {
			return h
		}
	}
	return NoHole
}

// String returns the name.
func (FirstFit) String() string { return "first-fit" }
