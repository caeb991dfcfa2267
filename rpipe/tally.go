package rpipe

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/runtime"
)

// A tally is memory of a rank that reads from many pipes: words which count what
// was put into the pipes of one group each. Whoever puts something there for the
// reader to look at (a notification, the close, its wish for memory) adds 1 to the
// word behind it:
//
//	writer                        reader
//	block, flag   ------------->  pipe 130
//	add 1         ------------->  word 2: pipes 128 to 191
//	                              compares words with what it has taken,
//	                              looks at the pipes of those that differ
//
// The reader's card tells a writer of the word.
type tally struct {
	memory
	team     *fabric.Team
	number   uint32
	ends     atomic.Int32 // that may be put to, and the reader itself
	orphaned atomic.Bool  // a writer is dead
}

// groupSize is how many pipes share a word.
const groupSize = 64

// newTally makes the words for so many pipes.
func newTally(ctx context.Context, t *runtime.Team, pipes int) (*tally, error) {
	team := t.Fabric(fabric.Key{})
	registry, err := registryOf(team)
	if err != nil {
		return nil, err
	}
	y := &tally{team: team, number: registry.number()}
	y.ends.Store(1)
	words := (pipes + groupSize - 1) / groupSize
	y.memory, err = newMemory(ctx, team, tallyName(team, t.Rank(), y.number), 8*words, unprepared)
	return y, err
}

// tallyName is what writers find a reader's tally by.
func tallyName(t *fabric.Team, reader int, number uint32) string {
	return fmt.Sprintf("rpipe/%s/tally#%d/%d", t.Name, number, reader)
}

// word loads the count of a group. Who sees it sees what was counted.
func (y *tally) word(group int) uint64 { return atomics.Word64(y.block.Bytes[8*group:]).Load() }

// hold counts an end that writers may count for.
func (y *tally) hold() { y.ends.Add(1) }

// drop gives the memory back behind the last one. orphaned: its writer is dead.
func (y *tally) drop(orphaned bool) {
	if y == nil {
		return
	}
	if orphaned {
		y.orphaned.Store(true)
	}
	if y.ends.Add(-1) == 0 {
		_ = y.release(y.team, y.orphaned.Load()) // nobody puts anything there any more, and nobody is there to be told
	}
}

// encode writes the tally into the reader's card.
func (y *tally) encode(card []byte, group int) {
	if y != nil {
		binary.LittleEndian.PutUint32(card[cardTally:], y.number+1)
		binary.LittleEndian.PutUint32(card[cardGroup:], uint32(group))
	}
}

// A counter is the tally's word as its writer knows it from the reader's card.
type counter struct {
	number uint32 // of the tally, plus 1; 0: there is none
	group  int
}

func counterOf(card []byte) counter {
	le := binary.LittleEndian
	return counter{le.Uint32(card[cardTally:]), int(le.Uint32(card[cardGroup:]))}
}

// joinCounter connects to the word, if there is one.
func (p *pipe) joinCounter(ctx context.Context, c counter) error {
	if c.number == 0 {
		return nil
	}
	return p.openCounter(ctx, c.number-1, c.group)
}

// knock has the reader look at this pipe although nothing was put there: it
// learns that the two ends differ. If that does not get through, nobody is there
// to learn it.
func (p *pipe) knock(ctx context.Context, c counter) {
	if c.number != 0 && p.openCounter(ctx, c.number-1, c.group) == nil {
		_ = p.tell(ctx)
	}
}
