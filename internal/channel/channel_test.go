package channel

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// length draws the length of a message around one of the limits.
func length(rnd *rand.Rand, ring int) int {
	limits := [...]int{0, MostInSlot, MostPiece(ring), ring, 3 * ring}
	return max(0, limits[rnd.IntN(len(limits))]+rnd.IntN(65)-32)
}

// configs are the ways in which an endpoint reaches its peer. Messages land on tcp.
func configs() []testjob.Config {
	return append(testjob.Transports(2), testjob.Strained(2)...)
}

// TestMessagesArriveInOrder sends messages of random lengths, whose receivers copy them or
// combine them, both ways and at the same time. Both ranks draw the same messages.
func TestMessagesArriveInOrder(t *testing.T) {
	for _, c := range configs() {
		t.Run(c.String(), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				for _, ring := range []int{2 << 10, 64 << 10} {
					rnd, e := rand.New(rand.NewPCG(seed, 1)), endOf(ctx, r, 1-r.Me, ring)
					for k := range testwatch.Rounds(300) {
						way, copied := rnd.IntN(3), rnd.IntN(2) == 0
						var sizes [2]int // by sender
						for i := range sizes {
							sizes[i] = length(rnd, ring)
						}
						out, src := message(e, k, sizes[r.Me], copied)
						in, want := message(e, k, sizes[1-r.Me], copied)
						got := make([]byte, len(want))
						switch way {
						case r.Me: // this rank alone sends
							in, want, got = Message{}, nil, nil
							r.NoError(sendAll(ctx, e, &out, src))
						case 1 - r.Me:
							r.NoError(receiveAll(ctx, e, &in, got))
						default:
							r.NoError(exchange(ctx, e, &out, src, &in, got))
						}
						r.Equal(want, got, "message %d of %v bytes", k, sizes)
					}
					r.Equal(e.Config.Lands, e.in.given > 0, "messages that landed")
					r.NoError(r.World.Barrier(ctx))
					r.NoError(e.Close())
				}
			})
		})
	}
}

func sendAll(ctx context.Context, e *End, m *Message, src []byte) error {
	e.BeginSend(m)
	for m.More() {
		if err := e.Send(ctx, m, src); err != nil {
			return err
		}
	}
	return m.Wait(ctx)
}

func receiveAll(ctx context.Context, e *End, m *Message, dst []byte) error {
	if err := e.BeginReceive(ctx, m, dst); err != nil {
		return err
	}
	for m.More() {
		if err := step(ctx, e, m, dst); err != nil {
			return err
		}
	}
	if m.Lands {
		e.Shut()
	}
	return nil
}

// TestMessagesOfACallWaitForNoRoom sends to this rank itself. It keeps fewer than Lead slots
// that are not freed, and never waits for room, whatever the lengths.
func TestMessagesOfACallWaitForNoRoom(t *testing.T) {
	for _, ring := range []int{1 << 10, 4 << 10, 64 << 10} {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
			rnd, e := rand.New(rand.NewPCG(seed, 1)), endOf(ctx, r, 0, ring)
			e.Await = func(context.Context, func() bool) error {
				r.Fail("a wait")
				return nil
			}
			type sent struct {
				m   Message
				mem []byte
			}
			var under []sent
			for k := range testwatch.Rounds(3000) {
				m, mem := message(e, k, rnd.IntN(MostPiece(ring)+1), false)
				if rnd.IntN(2) == 0 {
					m.Bytes = min(m.Bytes, MostInSlot)
					mem = mem[:m.Bytes]
				}
				e.BeginSend(&m)
				r.NoError(e.Send(ctx, &m, mem))
				under = append(under, sent{m, mem})
				for len(under) == Lead || len(under) > 0 && rnd.IntN(3) == 0 {
					came := under[0].m
					r.NoError(e.BeginReceive(ctx, &came, nil))
					_, piece, err := e.Next(ctx, &came)
					r.NoError(err)
					r.Equal(under[0].mem, append([]byte{}, piece...), "a later piece overwrote it")
					r.NoError(e.Free(ctx, &came))
					under = under[1:]
				}
			}
		})
	}
}
