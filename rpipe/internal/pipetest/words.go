package pipetest

import (
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// Words are places in an end's own memory over which a hostile peer may scribble.
type Words struct {
	Flags []atomic.Uint64
	Data  []byte
}

// Memory returns an end's own memory.
func Memory(p *pipe.End) Words { return Words{Data: p.Data, Flags: p.Words} }

// TagsAt is the offset of the tags in that memory.
const TagsAt = pipe.CardSize

// DataFlag returns the word of a notification in the first lap.
func DataFlag(granule, length int) uint64 {
	return rmalloc.Flag{Kind: rmalloc.Data, Offset: granule, Length: length}.Encode(1)
}

// InlineFlag returns the word of a notification in the first lap that has the block's bytes
// in its entry.
func InlineFlag(granule, length int) uint64 {
	return rmalloc.Flag{Kind: rmalloc.Inline, Offset: granule, Length: length}.Encode(1)
}

// Tag returns the word of freed granules in the first lap.
func Tag(granule, count int) uint64 { return rmalloc.Range{Offset: granule, Count: count}.Tag(1) }

// Scribble stores a word as a hostile peer may.
func Scribble(mem []byte, word uint64) { atomics.Word64(mem).Store(word) }

// ScribbleSummary changes a word of a summary as a hostile peer may.
func ScribbleSummary(y *pipe.Summary, place int, change func(word uint64) uint64) {
	word := &y.Words[place]
	word.Store(change(word.Load()))
	y.Team.Bell().Ring()
}
