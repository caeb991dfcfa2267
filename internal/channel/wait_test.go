package channel

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// fill sends messages of a length until there is no room left for another.
func fill(ctx context.Context, r *testjob.Rank, e *End, bytes int) {
	for range map[bool]int{true: Slots, false: 3}[bytes <= MostInSlot] {
		m, mem := message(e, 1, bytes, false)
		r.NoError(sendAll(ctx, e, &m, mem))
	}
}

// lengths are those that fill the slots, and the ring.
var lengths = [...]int{8, MostPiece(4 << 10)}

func TestWaitForRoomEndsWithItsContext(t *testing.T) {
	for _, bytes := range lengths {
		for _, c := range testjob.Transports(1) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				e := endOf(ctx, r, 0, 4<<10)
				fill(ctx, r, e, bytes)
				brief, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
				defer cancel()
				m, mem := message(e, 1, bytes, false)
				r.ErrorIs(sendAll(brief, e, &m, mem), context.DeadlineExceeded)
			})
		}
	}
}

// TestWaitsEndIfThePeerMakesAnotherCall has a rank send to itself: it is its own peer.
func TestWaitsEndIfThePeerMakesAnotherCall(t *testing.T) {
	for _, bytes := range lengths {
		testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
			e := endOf(ctx, r, 0, 4<<10)
			fill(ctx, r, e, bytes)
			m, mem := message(e, 2, bytes, false)
			var differs *Differs
			r.ErrorAs(sendAll(ctx, e, &m, mem), &differs)
			r.EqualValues(1, differs.Seq)
		})
	}
}

// TestRoomThatWasToldEndsAWaitInAnotherCall has the peer free the room first, and then make
// another call.
func TestRoomThatWasToldEndsAWaitInAnotherCall(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		e := endOf(ctx, r, 0, 4<<10)
		fill(ctx, r, e, 8)
		e.Await = func(context.Context, func() bool) error {
			for range Slots / 2 {
				m, _ := message(e, 1, 8, false)
				r.NoError(e.BeginReceive(ctx, &m, nil))
				_, _, err := e.Next(ctx, &m)
				r.NoError(err)
				r.NoError(e.Free(ctx, &m))
			}
			return nil
		}
		m, mem := message(e, 2, 8, false)
		r.NoError(sendAll(ctx, e, &m, mem), "the next slot is of call 1")
	})
}

// TestFullRingKeepsItsPieces sends pieces of random lengths to this rank itself until there
// is no room, and then receives them. A piece without room would overwrite the first ones.
func TestFullRingKeepsItsPieces(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		rnd, e := rand.New(rand.NewPCG(seed, 1)), endOf(ctx, r, 0, 4<<10)
		e.Await = func(context.Context, func() bool) error { return errNothingCame }
		for range testwatch.Rounds(500) {
			var sent []Message
			for k := 0; ; k++ {
				m, mem := message(e, k, rnd.IntN(MostPiece(e.Ring)+1), false)
				if err := sendAll(ctx, e, &m, mem); err != nil {
					r.ErrorIs(err, errNothingCame)
					break
				}
				sent = append(sent, m)
			}
			for k, m := range sent {
				_, want := message(e, k, m.Bytes, false)
				r.NoError(e.BeginReceive(ctx, &m, nil))
				_, piece, err := e.Next(ctx, &m)
				r.NoError(err)
				r.Equal(want, append([]byte{}, piece...), "message %d of %d", k, len(sent))
				r.NoError(e.Free(ctx, &m))
			}
		}
	})
}
