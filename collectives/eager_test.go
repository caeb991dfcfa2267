package collectives

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
)

// shortMost is the length of the longest eager message in a small team.
var shortMost = ringFor(mostHeap) / ringPart

// messageOf returns message k of a stream. Its length is near the limit of a slot or near
// the limit of short messages, in turns.
func messageOf(k, from int) []byte {
	lengths := [...]int{1 + k*37%(3*slotMost), 1 + k*4099%(3*shortMost/2)}
	return bytes.Repeat([]byte{byte(k*5 + from + 1)}, lengths[k/7%2])
}

// TestShortMessagesComeInOrderAmongOthers streams messages of all lengths to a late
// receiver, and then both ways.
func TestShortMessagesComeInOrderAmongOthers(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		many := testwatch.Rounds(20) * slots
		if r.Me > 1 {
			return
		}
		r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
			if r.Me == 1 {
				time.Sleep(20 * time.Millisecond)
			}
			for k := range many {
				want := messageOf(k, 0)
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
		r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
			for k := range many {
				came := make([]byte, len(messageOf(k, 1-r.Me)))
				if err := p.Exchange(ctx, 1-r.Me, messageOf(k, r.Me), 1-r.Me, came); err != nil {
					return err
				}
				r.Equal(messageOf(k, 1-r.Me), came, "message %d", k)
			}
			return nil
		}))
	})
}

// TestShortMessagesFillAllRoomOfALine passes messages along a line whose last member is
// late. All slots on the way fill up, or rings, and no members wait in a circle.
func TestShortMessagesFillAllRoomOfALine(t *testing.T) {
	for _, size := range []int{8, shortMost} {
		testjob.All(t, 3, func(ctx context.Context, r *testjob.Rank) {
			last := r.World.Size() - 1
			r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
				mem, want := make([]byte, size), make([]byte, size)
				for k := range 10 * slots {
					want[0], want[size-1] = byte(k), byte(k>>8)
					if r.Me == 0 {
						copy(mem, want)
					} else if err := p.Recv(ctx, r.Me-1, mem); err != nil {
						return err
					}
					if r.Me == last && k%100 == 0 {
						time.Sleep(5 * time.Millisecond)
					}
					r.Equal(want, mem)
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
}

// callTelling runs f like callByHand, in a call in which the two ends of a message alone
// know its length.
func callTelling(ctx context.Context, r *testjob.Rank, f func(ctx context.Context, p *transport) error) error {
	g, err := groupOf(r.World)
	r.NoError(err)
	g.transport.begin(team.Key{Seq: 1, Chain: 0xabc}, 1, true)
	return g.verdict(ctx, f(g.bound.to(ctx, g.team), g.transport))
}

// isNamed requires that the receiver of a message, and no other member, has learned the
// length that was sent and the length that it expected.
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
	for _, lengths := range [][2]int{{8, 9}, {9, 8}, {0, 8}, {8, 0}, {8, slotMost + 1}, {slotMost + 1, 8}, {0, 1000}, {1000, 0},
		{1000, 1001}, {8, shortMost + 1}, {shortMost + 1, 8}, {1000, shortMost + 1}, {shortMost + 1, 1000}} {
		t.Run(fmt.Sprint(lengths), func(t *testing.T) {
			testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
				if r.Me > 1 {
					return
				}
				err := callTelling(ctx, r, func(ctx context.Context, p *transport) error {
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

// TestSlotsThatHoldNoMessageAreRefused writes slots to a row that a correct sender never
// writes.
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
		"in place of a block":   {shortMost + 1, shortMost + 1, 1, 1, rpipe.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
				err := callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
					if r.Me == 0 {
						return p.Recv(ctx, 1, make([]byte, what.wanted))
					}
					r.NoError(p.open(ctx, 0))
					r.NoError(p.reach(ctx, 0))
					p.header(p.slot[:], &transfer{bytes: what.length, turn: what.turn})
					binary.NativeEndian.PutUint64(p.slot[slotNumber:], what.number)
					return p.partners[0].there.Put(ctx, &fabric.Put{Body: fabric.Part{At: slot(1), Mem: p.slot[:]}, Tell: fabric.TellByLastWord})
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
	for _, lengths := range [][2]int{{shortMost + 1, 8}, {8, shortMost + 1}} {
		testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
			if r.Me > 1 {
				return
			}
			err := callTelling(ctx, r, func(ctx context.Context, p *transport) error {
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

// TestEarlyMismatchedMessageIsNamed has a message come in another way than its receiver
// expects, while the receiver waits for another message.
func TestEarlyMismatchedMessageIsNamed(t *testing.T) {
	for _, lengths := range [][2]int{{shortMost + 1, 8}, {8, shortMost + 1}} {
		onTCP(2).Run(t, func(ctx context.Context, r *testjob.Rank) {
			err := callTelling(ctx, r, func(ctx context.Context, p *transport) error {
				long := make([]byte, 4*p.block())
				if r.Me == 0 { // waits for an offer, which comes behind rank 1's message
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

// TestMessageDuringWaitForRoomKeepsItsTurn sends more than there is room for. The receiver
// sends a message itself before it takes any.
func TestMessageDuringWaitForRoomKeepsItsTurn(t *testing.T) {
	for _, size := range []int{8, shortMost, shortMost + 1} {
		testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
			if r.Me > 1 {
				return
			}
			r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
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

// fillRoom exchanges a message with rank 1. Rank 0 then fills all room for such messages
// there.
func fillRoom(ctx context.Context, r *testjob.Rank, size, room int) {
	r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
		if err := p.Exchange(ctx, 1-r.Me, make([]byte, size), 1-r.Me, make([]byte, size)); err != nil {
			return err
		}
		for range (1 - r.Me) * (room - 1) { // one was taken, and not told of yet
			if err := p.Send(ctx, 1, make([]byte, size)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// rooms holds the number of messages, by size, for which a receiver has room.
var rooms = map[int]int{8: slots, shortMost: ringPart}

func TestWaitForRoomEndsWithItsContext(t *testing.T) {
	for size, room := range rooms {
		testjob.Config{Provider: "tcp", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
			fillRoom(ctx, r, size, room)
			if r.Me == 0 {
				brief, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				err := callByHand(brief, r, 1, func(ctx context.Context, p *transport) error { return p.Send(ctx, 1, make([]byte, size)) })
				r.ErrorIs(err, context.DeadlineExceeded)
			}
			r.NoError(r.World.Barrier(ctx))
		})
	}
}

func TestMoreTakenThanWereSentIsRefused(t *testing.T) {
	words := map[int]fabric.Flag{8: {Offset: rowTaken, Value: slots + 1}, shortMost: {Offset: rowFreed, Value: 1 << 40}}
	for size, room := range rooms {
		testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
			fillRoom(ctx, r, size, room)
			err := callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
				if r.Me == 0 {
					return p.Send(ctx, 1, make([]byte, size))
				}
				return p.partners[0].there.PostFlag(ctx, words[size])
			})
			if r.Me == 0 {
				r.ErrorIs(err, rpipe.ErrCorrupt)
				return
			}
			r.NoError(err)
		})
	}
}

// TestRingsHoldMessagesInFlight goes through rings with messages of any lengths. Messages in
// flight never overlap. Once all were taken, the ring has room for lead+1 messages of any
// length, however late the sender learns of it.
func TestRingsHoldMessagesInFlight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &transport{ring: ringFor(heapFor(rapid.IntRange(2, 3000).Draw(t, "members")))}
		ring := uint64(p.ring)
		type span struct{ from, to int }
		var underWay []span
		var ends []uint64
		var filled, freed, told uint64
		for _, size := range rapid.SliceOfN(rapid.IntRange(slotMost+1, p.eagerMost()), 1, 200).Draw(t, "sizes") {
			begin, end := p.inRing(&transfer{bytes: size}, filled)
			mine := span{begin - rowRing, begin - rowRing + size}
			require.True(t, mine.from >= 0 && mine.to <= p.ring, "%v in %d", mine, p.ring)
			for taken := rapid.IntRange(0, 3).Draw(t, "taken"); len(ends) > 0 && (taken > 0 || end-told > ring); taken-- {
				if newHalf(freed, ends[0], p.ring) {
					told = ends[0]
				}
				freed = ends[0]
				underWay, ends = underWay[1:], ends[1:]
			}
			require.LessOrEqual(t, end-told, ring, "all were taken, and there is no room")
			if len(ends) == 0 {
				for k, to := 0, filled; k <= lead; k++ {
					_, to = p.inRing(&transfer{bytes: p.eagerMost()}, to)
					require.LessOrEqual(t, to-told, ring, "%d more", k)
				}
			}
			for _, other := range underWay {
				require.True(t, mine.to <= other.from || other.to <= mine.from, "%v and %v", mine, other)
			}
			underWay, ends, filled = append(underWay, mine), append(ends, end), end
		}
	})
}
