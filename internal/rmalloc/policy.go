package rmalloc

// A Policy chooses a hole; the heap cuts the next block from its lower end. It
// holds no state of a heap: one value serves any number of them.
type Policy interface {
	// Choose returns a hole of at least count granules, or NoHole. It must end,
	// and must not keep holes beyond the call.
	Choose(holes *Holes, count int) Hole
	// String returns the policy's name.
	String() string
}
