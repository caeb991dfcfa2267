package rmalloc

// WorstFit takes the largest hole, the lowest of equal ones, so that the rest of
// it is still of use. It leaves no tiny holes, and soon no large hole either.
//
// Source: Knuth, TAOCP vol. 1, section 2.5, exercises; slide 20.
type WorstFit struct{}

// Choose implements Policy. It looks at all holes.
func (WorstFit) Choose(holes *Holes, count int) Hole {
	worst, size := NoHole, count-1
	for h := holes.First(); h != NoHole; h = holes.Next(h) {
		if c := holes.Count(h); c > size {
			worst, size = h, c
		}
	}
	return worst
}

// String returns the name.
func (WorstFit) String() string { return "worst-fit" }
