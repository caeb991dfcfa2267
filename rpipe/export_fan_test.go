package rpipe

import (
	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// Scribble changes a fan-in's word as a hostile neighbor may.
func (f *FanIn[T]) Scribble(group int, change func(word uint64) uint64) {
	word := atomics.Word64(f.in.tally.Counts.(*pipe.FabricCounts).Block.Bytes[8*group:])
	word.Store(change(word.Load()))
	f.in.team.Bell().Ring()
}
