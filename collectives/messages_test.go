package collectives

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/channel"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

// pieceMost is the length of the longest piece in a small team. A message of that length
// lands on tcp.
var pieceMost = channel.MostPiece(mostRing)

// ringed is the length of a message that lies in the ring.
const ringed = 16 << 10

// messageOf returns message k of a stream. Its length is near the limit of a slot or goes
// beyond, in turns.
func messageOf(k, from int) []byte {
	lengths := [...]int{1 + k*37%(3*channel.MostInSlot), 1 + k*4099%(3*ringed/2)}
	return bytes.Repeat([]byte{byte(k*5 + from + 1)}, lengths[k/7%2])
}

// TestMessagesOfAllLengthsArriveInOrder streams messages of all lengths to a late
// receiver, and then both ways.
func TestMessagesOfAllLengthsArriveInOrder(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		many := testwatch.Rounds(20) * channel.Slots
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

// TestMembersOfALineDoNotDeadlockWhileSlotsAndRingsAreFull passes messages along a line whose last member is
// late. All slots on the way fill up, or rings, and no members wait in a circle.
func TestMembersOfALineDoNotDeadlockWhileSlotsAndRingsAreFull(t *testing.T) {
	for _, size := range []int{8, ringed} {
		testjob.All(t, 3, func(ctx context.Context, r *testjob.Rank) {
			last := r.World.Size() - 1
			r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
				mem, want := make([]byte, size), make([]byte, size)
				for k := range 10 * channel.Slots {
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
	g.messages().begin(team.Key{Seq: 1, Chain: 0xabc}, 1, true)
	return g.verdict(ctx, f(new(binding).to(ctx, g.team, team.Key{}), g.messages()))
}

// isNamed requires that the receiver of a message has learned two lengths: the one sent and the one
// expected. No other member may have learned them.
func isNamed(r *testjob.Rank, receiver int, err error, lengths [2]int) {
	if r.Me != receiver {
		r.NoError(err)
		return
	}
	r.ErrorIs(err, runtime.ErrMismatch)
	r.Contains(err.Error(), fmt.Sprintf("a block of %d bytes", lengths[1]))
	r.Contains(err.Error(), fmt.Sprintf("one of %d", lengths[0]))
}

// TestMismatchErrorNamesMessagesOfUnlikeLengths has the two ends of a message differ in its length, on
// both sides of each limit.
func TestMismatchErrorNamesMessagesOfUnlikeLengths(t *testing.T) {
	for _, lengths := range [][2]int{{8, 9}, {9, 8}, {0, 8}, {8, 0}, {8, channel.MostInSlot + 1}, {channel.MostInSlot + 1, 8},
		{0, 1000}, {1000, 0}, {1000, 1001}, {8, pieceMost - 1}, {pieceMost - 1, 8}, {1000, pieceMost - 1}, {pieceMost - 1, 1000}} {
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

// TestMismatchErrorNamesMessagesInTheWrongOrder sends a long and a short message to a member that
// expects the short one first, or the other way round.
func TestMismatchErrorNamesMessagesInTheWrongOrder(t *testing.T) {
	for _, lengths := range [][2]int{{ringed, 8}, {8, ringed}} {
		testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
			if r.Me > 1 {
				return
			}
			err := callTelling(ctx, r, func(ctx context.Context, p *transport) error {
				if r.Me == 0 {
					return errors.Join(p.Send(ctx, 1, make([]byte, lengths[0])), p.Send(ctx, 1, make([]byte, lengths[1])))
				}
				return p.Recv(ctx, 0, make([]byte, lengths[1]))
			})
			isNamed(r, 1, err, lengths)
		})
	}
}

// TestMismatchErrorNamesAShortMessageAheadOfAnOffer has a member wait for an offer, which comes
// behind a message of another length than the member expects.
func TestMismatchErrorNamesAShortMessageAheadOfAnOffer(t *testing.T) {
	for _, lengths := range [][2]int{{ringed, 8}, {8, ringed}} {
		onTCP(2).Run(t, func(ctx context.Context, r *testjob.Rank) {
			err := callTelling(ctx, r, func(ctx context.Context, p *transport) error {
				long := make([]byte, 4*pieceMost)
				if r.Me == 0 {
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

// TestMessageThatArrivesDuringWaitForRoomKeepsItsPlace sends more than there is room for. The receiver
// sends a message itself before it takes any.
func TestMessageThatArrivesDuringWaitForRoomKeepsItsPlace(t *testing.T) {
	for _, size := range []int{8, ringed, pieceMost - 1} {
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
					for range 2*channel.Slots + k {
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

// TestExpectConnectsToTheMembersAtOnce has rank 0 alone prepare for messages.
func TestExpectConnectsToTheMembersAtOnce(t *testing.T) {
	onTCP(4).Run(t, func(ctx context.Context, r *testjob.Rank) {
		g, err := groupOf(r.World)
		r.NoError(err)
		for _, step := range []struct{ members, opened []int }{{[]int{0, 2}, []int{2}}, {nil, []int{1, 2, 3}}} {
			if r.Me == 0 {
				r.NoError(g.messages().Expect(ctx, step.members))
				var opened []int
				for m, end := range g.messages().ends {
					if end != nil {
						opened = append(opened, m)
					}
				}
				r.Equal(step.opened, opened)
			}
		}
		r.NoError(r.World.Barrier(ctx))
	})
}
