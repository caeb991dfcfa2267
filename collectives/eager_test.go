package collectives

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
)

// letter is message k of a stream, around the length up to which they are short.
func letter(k, from int) []byte {
	return bytes.Repeat([]byte{byte(k*5 + from + 1)}, 1+k*37%(3*eagerMost))
}

// TestShortMessagesComeInOrderAmongOthers streams messages of all lengths to one that is
// late, and then both ways.
func TestShortMessagesComeInOrderAmongOthers(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		const many = 20 * slots
		if r.Me > 1 {
			return
		}
		r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *carrier) error {
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
		r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *carrier) error {
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

// TestShortMessagesFillAllSlotsOfALine passes them on along a line whose last member is
// late: all slots on the way fill up, and nobody waits in a circle.
func TestShortMessagesFillAllSlotsOfALine(t *testing.T) {
	testjob.All(t, 3, func(ctx context.Context, r *testjob.Rank) {
		last := r.World.Size() - 1
		r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *carrier) error {
			mem := make([]byte, 8)
			for k := range 10 * slots {
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

// callTelling is callByHand of a call in which the two ends of a message alone know its
// length.
func callTelling(ctx context.Context, r *testjob.Rank, f func(ctx context.Context, p *carrier) error) error {
	g, err := groupOf(r.World)
	r.NoError(err)
	g.carrier.begin(1, 0xabc, 1, true)
	return g.verdict(ctx, f(g.bound.to(ctx, g.team), g.carrier))
}

// isNamed requires that the receiver of a message, and nobody else, has learned what was
// sent and what it expected.
func isNamed(r *testjob.Rank, receiver int, err error, lengths [2]int) {
	if r.Me != receiver {
		r.NoError(err)
		return
	}
	r.ErrorIs(err, runtime.ErrMismatch)
	r.Contains(err.Error(), fmt.Sprintf("a block of %d bytes", lengths[1]))
	r.Contains(err.Error(), fmt.Sprintf("one of %d", lengths[0]))
}

// TestShortMessagesOfUnlikeLengthsAreNamed has the two ends of a message
// differ in its length where that makes them wait for different things.
func TestShortMessagesOfUnlikeLengthsAreNamed(t *testing.T) {
	for _, lengths := range [][2]int{{8, 9}, {9, 8}, {0, 8}, {8, 0}, {8, eagerMost + 1}, {eagerMost + 1, 8}, {0, 1000}, {1000, 0}} {
		t.Run(fmt.Sprint(lengths), func(t *testing.T) {
			testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
				if r.Me > 1 {
					return
				}
				err := callTelling(ctx, r, func(ctx context.Context, p *carrier) error {
					if r.Me == 0 {
						return p.Send(ctx, 1, make([]byte, lengths[0]))
					}
					return p.Recv(ctx, 0, make([]byte, lengths[1]))
				})
				isNamed(r, 1, err, lengths)
			})
		})
	}
}

// TestSlotsThatHoldNoMessageAreRefused writes to a row what a member could that is out of
// its mind.
func TestSlotsThatHoldNoMessageAreRefused(t *testing.T) {
	for name, what := range map[string]struct {
		length, wanted int
		number, turn   uint64
		err            error
	}{
		"longer than a slot":    {1 << 60, 8, 1, 1, runtime.ErrMismatch},
		"of less than no bytes": {-1, 8, 1, 1, runtime.ErrMismatch},
		"another's number":      {8, 8, 7, 1, rpipe.ErrCorrupt},
		"out of turn":           {8, 8, 1, 2, rpipe.ErrCorrupt},
		"in place of a block":   {1000, 1000, 1, 1, rpipe.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
				err := callByHand(ctx, r, 1, func(ctx context.Context, p *carrier) error {
					if r.Me == 0 {
						return p.Recv(ctx, 1, make([]byte, what.wanted))
					}
					r.NoError(p.open(ctx, 0))
					r.NoError(p.reach(ctx, 0))
					p.header(p.slot[:], &course{bytes: what.length, turn: what.turn})
					binary.NativeEndian.PutUint64(p.slot[slotNumber:], what.number)
					return p.partners[0].there.WriteWhole(ctx, slot(1), p.slot[:])
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

// TestMessagesThatChangedPlacesAreNamed sends a long and a short message to a member that
// expects the short one first, and finds both when it looks.
func TestMessagesThatChangedPlacesAreNamed(t *testing.T) {
	for _, lengths := range [][2]int{{1000, 8}, {8, 1000}} {
		testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
			if r.Me > 1 {
				return
			}
			err := callTelling(ctx, r, func(ctx context.Context, p *carrier) error {
				if r.Me == 0 {
					return errors.Join(p.Send(ctx, 1, make([]byte, lengths[0])), p.Send(ctx, 1, make([]byte, lengths[1])))
				}
				r.NoError(p.open(ctx, 0))
				p.watch.other = &p.partners[0]
				r.NoError(p.group.team.Await(ctx, func() bool { return p.watch.other.in.Arrived() && p.watch.other.eager.came() }))
				return p.Recv(ctx, 0, make([]byte, lengths[1]))
			})
			isNamed(r, 1, err, lengths)
		})
	}
}

// TestWhatWasSeenBeforeItsTurnIsNotForgotten has a message come, in another way than it is
// expected, while its receiver waits for something else.
func TestWhatWasSeenBeforeItsTurnIsNotForgotten(t *testing.T) {
	for _, lengths := range [][2]int{{1000, 8}, {8, 1000}} {
		onTCP(2).Run(t, func(ctx context.Context, r *testjob.Rank) {
			err := callTelling(ctx, r, func(ctx context.Context, p *carrier) error {
				long := make([]byte, 4*p.block())
				if r.Me == 0 { // waits for an offer, which comes behind the other's message
					if err := p.Send(ctx, 1, long); err != nil {
						return err
					}
					return p.Recv(ctx, 1, make([]byte, lengths[1]))
				}
				if err := p.Send(ctx, 0, make([]byte, lengths[0])); err != nil {
					return err
				}
				return p.Recv(ctx, 0, long)
			})
			isNamed(r, 0, err, lengths)
		})
	}
}

// TestWhatComesWhileOneWaitsForASlotKeepsItsTurn sends more than there are slots to a
// member that sends something itself before it takes any.
func TestWhatComesWhileOneWaitsForASlotKeepsItsTurn(t *testing.T) {
	for _, size := range []int{8, 1000} {
		testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
			if r.Me > 1 {
				return
			}
			r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *carrier) error {
				few, mem := make([]byte, 8), make([]byte, size)
				for k := range 20 {
					if r.Me == 1 {
						mem[0] = byte(k)
						if err := p.Send(ctx, 0, mem); err != nil {
							return err
						}
					}
					for range 2*slots + k {
						move := p.Recv
						if r.Me == 0 {
							move = p.Send
						}
						if err := move(ctx, 1-r.Me, few); err != nil {
							return err
						}
					}
					if r.Me == 0 {
						if err := p.Recv(ctx, 1, mem); err != nil {
							return err
						}
						r.Equal(byte(k), mem[0])
					}
				}
				return nil
			}))
		})
	}
}

// fillSlots exchanges a message with rank 1 and fills all slots there, at rank 0.
func fillSlots(ctx context.Context, r *testjob.Rank) {
	r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *carrier) error {
		if err := p.Exchange(ctx, 1-r.Me, make([]byte, 8), 1-r.Me, make([]byte, 8)); err != nil {
			return err
		}
		for range (1 - r.Me) * (slots - 1) { // one was taken, and not told of yet
			if err := p.Send(ctx, 1, make([]byte, 8)); err != nil {
				return err
			}
		}
		return nil
	}))
}

func TestWhoWaitsForASlotEndsWithItsContext(t *testing.T) {
	testjob.Config{Provider: "tcp", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		fillSlots(ctx, r)
		if r.Me == 0 {
			brief, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			err := callByHand(brief, r, 1, func(ctx context.Context, p *carrier) error { return p.Send(ctx, 1, make([]byte, 8)) })
			r.ErrorIs(err, context.DeadlineExceeded)
		}
		r.NoError(r.World.Barrier(ctx))
	})
}

func TestMoreTakenThanWereSentIsRefused(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		fillSlots(ctx, r)
		err := callByHand(ctx, r, 1, func(ctx context.Context, p *carrier) error {
			if r.Me == 0 {
				return p.Send(ctx, 1, make([]byte, 8))
			}
			return p.partners[0].there.PostFlag(ctx, fabric.Flag{Offset: rowTaken, Value: slots + 1})
		})
		if r.Me == 0 {
			r.ErrorIs(err, rpipe.ErrCorrupt)
			return
		}
		r.NoError(err)
	})
}
