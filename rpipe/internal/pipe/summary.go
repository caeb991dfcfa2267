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

// A Summary has one word for each pipe that a fan-in reads from. A writer that puts something
// there for the reader (a notification, the close, its wish for memory) stores a new number
// in the word behind it:
//
//	writer of pipe 35             reader
//	block, flag   ------------->  pipe 35
//	number        ------------->  word 35: looks at the pipes whose words have changed
//
// The card of the reader tells its writer of the word. Over a window there are no words: the
// reader looks at the pipes.
type Summary struct {
	Words    []atomic.Uint64 // by place
	Team     *team.Team
	memory   Memory
	number   uint32
	users    atomic.Int32 // pipes whose writers may store numbers, and the fan-in itself
	orphaned atomic.Bool  // a writer is dead
}

// NewSummary makes the words for so many pipes with these options.
func NewSummary(ctx context.Context, t *runtime.Team, pipes int, o *Options) (*Summary, error) {
	y := &Summary{Team: team.Of(t)}
	y.users.Store(int32(pipes) + 1)
	if o.Layer != nil {
		return y, nil
	}
	registry, err := RegistryOf(y.Team)
	if err != nil {
		return nil, err
	}
	y.number = registry.number()
	y.memory, err = newMemory(ctx, y.Team, summaryName(y.Team, y.Team.Rank, y.number), WordSize*pipes)
	if err != nil {
		return nil, err
	}
	y.Words = atomics.Words64(y.memory.Block.Bytes)
	return y, nil
}

// summaryName returns the name by which writers find a reader's summary.
func summaryName(t *team.Team, reader int, number uint32) string {
	return fmt.Sprintf("rpipe/%s/summary#%d/%d", t.Name, number, reader)
}

// Entry returns what the card of a reader says of its word.
func (y *Summary) Entry(place int) SummaryEntry {
	if y == nil || y.Words == nil {
		return SummaryEntry{}
	}
	return SummaryEntry{y.number + 1, place}
}

// GiveUp gives the words back. No pipe was opened.
func (y *Summary) GiveUp() { _ = y.memory.Release(y.Team, false) } // the caller has another error

// Drop gives the words back behind the last pipe and the fan-in itself. orphaned: the pipe's writer
// is dead.
func (y *Summary) Drop(orphaned bool) {
	if y == nil {
		return
	}
	if orphaned {
		y.orphaned.Store(true)
	}
	if y.users.Add(-1) == 0 {
		_ = y.memory.Release(y.Team, y.orphaned.Load()) // no caller is left to take the error
	}
}

// A SummaryEntry says where a pipe's word is, as its writer reads it in the reader's card.
type SummaryEntry struct {
	Number uint32 // of the summary, plus 1; 0: there is none
	Place  int
}

// FindWord connects to a word of the peer's summary, if there is one.
func (p *End) FindWord(ctx context.Context, e SummaryEntry) error {
	if e.Number == 0 {
		return nil
	}
	r, err := p.team.TryRegion(ctx, p.team.Members[p.Peer], summaryName(p.team, p.Peer, e.Number-1))
	switch {
	case err != nil:
		return err
	case r == nil || e.Place >= r.Len/WordSize:
		return ErrNoSummary
	}
	p.SummaryUpdate.Open(r, e.Place)
	return nil
}

// pokeSummary has the reader look at this pipe although nothing was put there: it
// learns that the two ends differ. It is false when ctx ends first; with any other
// failure no reader is there to learn it.
func (p *End) pokeSummary(ctx context.Context) (done bool) {
	e := &p.closing.look
	if e.Number == 0 {
		return true
	}
	err := p.FindWord(ctx, *e)
	switch {
	case err == nil:
		_ = p.Tell()
	case errors.Is(err, context.Cause(ctx)):
		return false
	}
	e.Number = 0
	return true
}
