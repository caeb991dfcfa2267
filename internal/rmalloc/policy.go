package rmalloc

// A Policy chooses the hole from whose lower end the next block is cut. It
// holds no state of a heap: one value serves any number of them.
type Policy interface {
	// Choose returns a hole of at least count granules, or NoHole. It must end,
	// and must not keep holes beyond the call.
	Choose(holes *Holes, count int) Hole
	// String returns the policy's name.
	String() string
}
