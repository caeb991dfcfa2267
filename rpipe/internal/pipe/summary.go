package pipe

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// A Summary has one word for each group of pipes that a rank reads from. The word counts
// puts into the pipes of its group, in one field for each pipe. A writer that puts something
// there for the reader (a notification, the close, its wish for memory) adds 1 to the field
// behind it:
//
//	writer                        reader
//	block, flag   ------------->  pipe 35
//	add 1 << 6    ------------->  word 2: pipes 32 to 47
//	                              subtracts what it has taken from the word,
//	                              looks at the pipes whose fields are not 0
//
// Three puts fill a field, and more of them flow over into the fields above. So the reader
// also looks below fields whose pipes have nothing for it. The word has room for the sum of
// all that can be put and not taken, which is never a multiple of 2^64.
//
// The reader's card tells a writer of the field.
type Summary struct {
	Counts
	Team     *team.Team
	ends     atomic.Int32 // that may be put to, and the reader itself
	orphaned atomic.Bool  // a writer is dead
}

// Counts are where the words lie.
type Counts interface {
	// Word loads the count of a group. A reader that sees the count sees the counted puts.
	Word(group int) uint64
	// Counter returns the card's description of a group's word.
	Counter(group int) Counter
	// GiveUp takes the words back. orphaned: a rank that added to them is dead.
	GiveUp(orphaned bool)
}

const (
	// GroupSize is how many pipes share a word.
	GroupSize = 16
	// FieldBits is the width of a pipe's field in the word.
	FieldBits = 2
)

// Field returns the lowest bit of a pipe's field in the word of its group.
func Field(place int) int { return place % GroupSize * FieldBits }

// NewSummary makes the words for so many pipes with these options.
func NewSummary(ctx context.Context, t *runtime.Team, pipes int, o *Options) (y *Summary, err error) {
	y = &Summary{Team: team.Of(t)}
	y.ends.Store(1)
	y.Counts, err = o.layer(y.Team).Counts(ctx, (pipes+GroupSize-1)/GroupSize)
	return y, err
}

// Hold counts an end that writers may count for.
func (y *Summary) Hold() { y.ends.Add(1) }

// Drop gives the words back behind the last one. orphaned: its writer is dead.
func (y *Summary) Drop(orphaned bool) {
	if y == nil {
		return
	}
	if orphaned {
		y.orphaned.Store(true)
	}
	if y.ends.Add(-1) == 0 {
		y.GiveUp(y.orphaned.Load())
	}
}

// FabricCounts lie in memory of their own.
type FabricCounts struct {
	Memory
	team   *team.Team
	number uint32
}

// Counts implements Layer.
func (l fabricLayer) Counts(ctx context.Context, groups int) (Counts, error) {
	registry, err := RegistryOf(l.team)
	if err != nil {
		return nil, err
	}
	y := &FabricCounts{team: l.team, number: registry.number()}
	y.Memory, err = newMemory(ctx, l.team, summaryName(l.team, l.team.Rank, y.number), 8*groups)
	return y, err
}

// summaryName returns the name by which writers find a reader's summary.
func summaryName(t *team.Team, reader int, number uint32) string {
	return fmt.Sprintf("rpipe/%s/summary#%d/%d", t.Name, number, reader)
}

// Word implements Counts.
func (y *FabricCounts) Word(group int) uint64 {
	return atomics.Word64(y.Block.Bytes[8*group:]).Load()
}

// Counter implements Counts.
func (y *FabricCounts) Counter(group int) Counter { return Counter{Number: y.number + 1, Group: group} }

// GiveUp implements Counts.
func (y *FabricCounts) GiveUp(orphaned bool) {
	_ = y.Release(y.team, orphaned) // no writer adds to it any more, and no caller is left to take the error
}

// A Counter is a field of the summary as its writer knows it from the reader's card.
type Counter struct {
	Number uint32 // of the summary, plus 1; 0: there is none
	Group  int
	Field  int // below GroupSize
}

// pokeSummary has the reader look at this pipe although nothing was put there: it
// learns that the two ends differ. It is false when ctx ends first; with any other
// failure no reader is there to learn it.
func (p *End) pokeSummary(ctx context.Context) (done bool) {
	c := &p.closing.look
	if c.Number == 0 {
		return true
	}
	err := p.openCounter(ctx, *c)
	switch {
	case err == nil:
		_ = p.Tell()
	case errors.Is(err, context.Cause(ctx)):
		return false
	}
	c.Number = 0
	return true
}
