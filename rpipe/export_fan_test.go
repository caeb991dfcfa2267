package rpipe

import "github.com/gopgas/gopgas/internal/atomics"

// Scribble is what a hostile neighbour may do to the words that a fan-in looks at.
func (f *FanIn[T]) Scribble(group int, change func(word uint64) uint64) {
	word := atomics.Word64(f.in.tally.counts.(*fabricCounts).block.Bytes[8*group:])
	word.Store(change(word.Load()))
	f.in.team.Bell().Ring()
}
