package collectives

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
)

func TestManyMembersHaveFewSlots(t *testing.T) {
	require.Equal(t, mostSlots, slotsFor(2))
	require.Equal(t, mostSlots, slotsFor(allSlots/mostSlots))
	require.Equal(t, leastSlots, slotsFor(1<<20))
	for n := 1; n < 3*allSlots; n++ {
		require.Zero(t, slotsFor(n)%2)
		require.GreaterOrEqual(t, slotsFor(n), slotsFor(n+1))
	}
	require.Greater(t, leastSlots/2, lead-1, "an exchange sends that many before it takes any")
}

// letter is message k of a stream, around the length up to which there are notes.
func letter(k, from int) []byte {
	return bytes.Repeat([]byte{byte(k*5 + from + 1)}, 1+k*37%(3*noteMost))
}

// TestShortMessagesComeInOrderAmongOthers streams messages of all lengths to one that is
// late, and then both ways.
func TestShortMessagesComeInOrderAmongOthers(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		const many = 20 * mostSlots
		if r.Me > 1 {
			return
		}
		r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *pipes) error {
			if r.Me == 1 {
				time.Sleep(20 * time.Millisecond)
			}
			for k := range many {
				want := letter(k, 0)
				if r.Me == 0 {
					if err := p.Send(ctx, 1, want); err != nil {
						return err
					}
					continue
				}
				came := make([]byte, len(want))
				if err := p.Recv(ctx, 0, came); err != nil {
					return err
				}
				r.Equal(want, came, "message %d", k)
			}
			return nil
		}))
		r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *pipes) error {
			for k := range many {
				came := make([]byte, len(letter(k, 1-r.Me)))
				if err := p.Exchange(ctx, 1-r.Me, letter(k, r.Me), 1-r.Me, came); err != nil {
					return err
				}
				r.Equal(letter(k, 1-r.Me), came, "message %d", k)
			}
			return nil
		}))
	})
}

// TestNotesGoThroughAllSlotsOfALine passes notes on along a line whose last member is
// late: all slots on the way fill up, and nobody waits in a circle.
func TestNotesGoThroughAllSlotsOfALine(t *testing.T) {
	testjob.All(t, 3, func(ctx context.Context, r *testjob.Rank) {
		last := r.World.Size() - 1
		r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *pipes) error {
			mem := make([]byte, 8)
			for k := range 10 * mostSlots {
				if r.Me == 0 {
					mem[0], mem[1] = byte(k), byte(k>>8)
				} else if err := p.Recv(ctx, r.Me-1, mem); err != nil {
					return err
				}
				if r.Me == last && k%100 == 0 {
					time.Sleep(5 * time.Millisecond)
				}
				r.Equal([]byte{byte(k), byte(k >> 8), 0, 0, 0, 0, 0, 0}, mem)
				if r.Me < last {
					if err := p.Send(ctx, r.Me+1, mem); err != nil {
						return err
					}
				}
			}
			return nil
		}))
	})
}

// TestMessagesOfUnlikeLengthsAreNamedThoughOneIsANote has the two ends of a message
// differ in its length where that makes them wait for different things.
func TestMessagesOfUnlikeLengthsAreNamedThoughOneIsANote(t *testing.T) {
	for _, lengths := range [][2]int{{8, 9}, {9, 8}, {0, 8}, {8, 0}, {8, noteMost + 1}, {noteMost + 1, 8}, {0, 1000}, {1000, 0}} {
		t.Run(fmt.Sprint(lengths), func(t *testing.T) {
			testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
				if r.Me > 1 {
					return
				}
				start := time.Now()
				g, err := groupOf(r.World)
				r.NoError(err)
				g.pipes.begin(1, 0xabc, 1, true)
				err = g.verdict(ctx, func() error {
					if r.Me == 0 {
						return g.pipes.Send(g.bound.to(ctx, g.team), 1, make([]byte, lengths[0]))
					}
					return g.pipes.Recv(g.bound.to(ctx, g.team), 0, make([]byte, lengths[1]))
				}())
				if r.Me == 0 {
					r.NoError(err)
					return
				}
				r.ErrorIs(err, runtime.ErrMismatch)
				r.Contains(err.Error(), fmt.Sprintf("a block of %d bytes", lengths[1]))
				r.Contains(err.Error(), fmt.Sprintf("one of %d", lengths[0]))
				r.Less(time.Since(start), time.Minute)
			})
		})
	}
}

// TestNotesThatAreNoMessagesAreRefused writes what a member that is out of its mind could.
func TestNotesThatAreNoMessagesAreRefused(t *testing.T) {
	for name, what := range map[string]struct {
		length, wanted int
		err            error
	}{
		"longer than notes are":     {1 << 60, 8, runtime.ErrMismatch},
		"of less than no bytes":     {-1, 8, runtime.ErrMismatch},
		"in place of a whole block": {1000, 1000, rpipe.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
				err := callByHand(ctx, r, 1, func(ctx context.Context, p *pipes) error {
					if r.Me == 0 {
						return p.Recv(ctx, 1, make([]byte, what.wanted))
					}
					r.NoError(p.open(ctx, 0))
					p.header(p.card[:], what.length)
					atomics.Word64(p.card[noteNumber:]).Store(1)
					return p.partners[0].there.WriteWhole(ctx, p.Rank()*p.rowSize()+p.slot(1), p.card[:])
				})
				if r.Me == 0 {
					r.ErrorIs(err, what.err)
					return
				}
				r.NoError(err)
			})
		})
	}
}

// TestWhatWaitsForSlotsEndsWithItsContext fills the slots of one that takes nothing.
func TestWhatWaitsForSlotsEndsWithItsContext(t *testing.T) {
	testjob.Config{Provider: "tcp", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *pipes) error { // first contact
			return p.Exchange(ctx, 1-r.Me, make([]byte, 8), 1-r.Me, make([]byte, 8))
		}))
		if r.Me == 0 {
			brief, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			sent := 0
			err := callByHand(brief, r, 1, func(ctx context.Context, p *pipes) error {
				for {
					if err := p.Send(ctx, 1, make([]byte, 8)); err != nil {
						return err
					}
					sent++
				}
			})
			r.ErrorIs(err, context.DeadlineExceeded)
			r.Equal(mostSlots-1, sent, "one was taken, and not told of yet")
		}
		r.NoError(r.World.Barrier(ctx))
	})
}
