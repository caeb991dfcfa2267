package collectives

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

// onTCP returns a job of n ranks whose long messages land.
func onTCP(n int) testjob.Config { return testjob.Config{Provider: "tcp", Ranks: n} }

// long returns a message of so many pieces and a little more.
func long(pieces, seed int) []byte {
	mem := make([]byte, pieces*pieceMost+7)
	for i := range mem {
		mem[i] = byte(i*13 + i>>9 + seed)
	}
	return mem
}

// TestLongMessagesLandInTheBufferOfTheReceiver sends messages around the length from which they land.
func TestLongMessagesLandInTheBufferOfTheReceiver(t *testing.T) {
	onTCP(2).Run(t, func(ctx context.Context, r *testjob.Rank) {
		for round := range 3 {
			for pieces := range 5 {
				r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
					src, dst := long(pieces, r.Me+round), make([]byte, pieces*pieceMost+7)
					if err := p.Exchange(ctx, 1-r.Me, src, 1-r.Me, dst); err != nil {
						return err
					}
					r.True(bytes.Equal(long(pieces, 1-r.Me+round), dst), "%d pieces differ", pieces)
					r.Equal(pieces > 0, p.ends[1-r.Me].Lands(len(dst)), "%d pieces", pieces)
					return nil
				}))
			}
		}
	})
}

// TestAllMembersExchangeLongMessagesAtOnce has all members exchange messages with all, around the length
// from which a sender waits for its receiver.
func TestAllMembersExchangeLongMessagesAtOnce(t *testing.T) {
	for _, size := range []int{pieceMost - 1, pieceMost, 3 * pieceMost} {
		onTCP(4).Run(t, func(ctx context.Context, r *testjob.Rank) {
			src, dst := make([]byte, 4*size), make([]byte, 4*size)
			for to := range 4 {
				copy(src[to*size:], bytes.Repeat([]byte{byte(16*r.Me + to)}, size))
			}
			for range 3 {
				r.NoError(AllToAll(ctx, r.World, src, dst, WithAlgorithm("direct")))
				for from := range 4 {
					r.Equal(size, bytes.Count(dst[from*size:][:size], []byte{byte(16*from + r.Me)}))
				}
			}
			ring, err := NewCart(ctx, r.World, []int{4}, []bool{true})
			r.NoError(err)
			r.NoError(NeighborAllToAll(ctx, ring.Graph, src[:2*size], dst[:2*size]))
			lower, higher := (r.Me+3)%4, (r.Me+1)%4
			r.Equal(size, bytes.Count(dst[:size], []byte{byte(16*lower + 1)}))
			r.Equal(size, bytes.Count(dst[size:2*size], []byte{byte(16 * higher)}))
		})
	}
}

// TestFoldedMessagesDoNotLand sends messages that the receiver combines where they lie. One
// that landed would overwrite its data.
func TestFoldedMessagesDoNotLand(t *testing.T) {
	onTCP(2).Run(t, func(ctx context.Context, r *testjob.Rank) {
		xor := func(dst, left, right []byte) {
			for i := range dst {
				dst[i] = left[i] ^ right[i]
			}
		}
		r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
			acc := long(6, 0)
			if err := p.ExchangeFold(ctx, 1-r.Me, long(6, 0), 1-r.Me, message.Folding{Dst: acc, Own: acc, Combine: xor, Elem: 1}); err != nil {
				return err
			}
			r.Equal(make([]byte, len(acc)), acc)
			return nil
		}))
	})
}

// TestCanceledRecvGivesTheCallerItsMemoryBack cancels the receiver in the middle
// of a message, at many moments.
func TestCanceledRecvGivesTheCallerItsMemoryBack(t *testing.T) {
	enough := errors.New("enough")
	onTCP(2).Run(t, func(ctx context.Context, r *testjob.Rank) {
		const size = 16 << 20
		rounds := testwatch.Rounds(20)
		for round := range rounds {
			team, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			mem := make([]byte, size)
			mine, cancel := ctx, context.CancelFunc(func() {})
			if r.Me == 0 {
				mem = bytes.Repeat([]byte{0xff}, size)
			} else {
				mine, cancel = context.WithTimeoutCause(ctx, time.Duration(round)*5*time.Millisecond/time.Duration(rounds), enough)
			}
			err = Broadcast(mine, team, 0, mem)
			seen := bytes.Clone(mem)
			if r.Me == 1 && err != nil {
				r.ErrorIs(err, enough)
			}
			cancel()
			r.NoError(r.World.Barrier(ctx)) // behind all messages to this rank
			r.True(bytes.Equal(seen, mem), "the message came to memory that was the caller's again")
		}
	})
}

// TestMismatchErrorNamesLongMessagesOfUnlikeLengths has the two ends of a message, of which one or
// both take it to be long, differ in its length.
func TestMismatchErrorNamesLongMessagesOfUnlikeLengths(t *testing.T) {
	block := pieceMost
	for _, lengths := range [][2]int{{1, 4 * block}, {4 * block, 1}, {ringed, 4 * block}, {4 * block, ringed}, {4 * block, 5 * block}, {5 * block, 4 * block}} {
		onTCP(2).Run(t, func(ctx context.Context, r *testjob.Rank) {
			counts, none := Blocks{Counts: []int{0, 0}}, Blocks{Counts: []int{0, 0}}
			counts.Counts[1-r.Me] = lengths[r.Me]
			mem := make([]byte, lengths[r.Me])
			var err error
			if r.Me == 0 {
				err = AllToAllV(ctx, r.World, mem, counts, nil, none)
			} else {
				err = AllToAllV(ctx, r.World, nil, none, mem, counts)
			}
			if err == nil {
				err = r.World.Barrier(ctx)
			}
			r.ErrorIs(err, runtime.ErrMismatch)
			var unlike *runtime.MismatchError
			r.ErrorAs(err, &unlike)
			r.Contains(err.Error(), fmt.Sprint(lengths[0]))
			r.Contains(err.Error(), fmt.Sprint(lengths[1]))
		})
	}
}

// TestMismatchErrorNamesAMessageInARingOfWrongLengths goes around a ring, and between two,
// where each member sends a length that the next does not expect.
func TestMismatchErrorNamesAMessageInARingOfWrongLengths(t *testing.T) {
	const long = mostRing
	for _, lengths := range [][2]int{{long, 8}, {8, long}, {long, ringed}, {ringed, long}, {ringed, 8}, {8, ringed}, {long, 0}, {0, long}, {long, long + 1}} {
		for _, n := range []int{2, 3} {
			onTCP(n).Run(t, func(ctx context.Context, r *testjob.Rank) {
				to, from := Blocks{Counts: make([]int, n)}, Blocks{Counts: make([]int, n)}
				to.Counts[r.Right()], from.Counts[r.Left()] = lengths[0], lengths[1]
				err := AllToAllV(ctx, r.World, make([]byte, lengths[0]), to, make([]byte, lengths[1]), from)
				if err == nil {
					err = r.World.Barrier(ctx)
				}
				if !errors.Is(err, runtime.ErrTeamBroken) { // one finds it first
					r.ErrorIs(err, runtime.ErrMismatch)
				}
			})
		}
	}
}

// TestCanceledMemberEndsLongMessagesOfAllMembers requires that afterward no
// message comes to memory that is the callers' again.
func TestCanceledMemberEndsLongMessagesOfAllMembers(t *testing.T) {
	enough := errors.New("enough")
	onTCP(4).Run(t, func(ctx context.Context, r *testjob.Rank) {
		in, out := bytes.Repeat([]byte{byte(r.Me + 1)}, 4*4*mostRing), make([]byte, 4*4*mostRing)
		for round := range max(2, testwatch.Rounds(8)) { // both algorithms
			team, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			mine, cancel := ctx, context.CancelFunc(func() {})
			if r.Me == round%4 {
				mine, cancel = context.WithTimeoutCause(ctx, time.Duration(1+3*round)*time.Millisecond, enough)
			}
			for err == nil {
				clear(out)
				err = AllToAll(mine, team, in, out, WithAlgorithm([]string{"direct", "pairwise"}[round%2]))
			}
			seen := bytes.Clone(out)
			cancel()
			if r.Me == round%4 {
				r.ErrorIs(err, enough)
			} else {
				r.ErrorIs(err, runtime.ErrTeamBroken)
			}
			r.NoError(r.World.Barrier(ctx)) // behind all messages to this rank
			r.True(bytes.Equal(seen, out), "a message came to memory that was the caller's again")
		}
	})
}

// TestReceiverFindsThePieceOfEachFlag has a sender give up while the socket is full. It has already
// posted the flag of a piece that the device had not sent.
func TestReceiverFindsThePieceOfEachFlag(t *testing.T) {
	onTCP(2).Run(t, func(ctx context.Context, r *testjob.Rank) {
		g, err := groupOf(r.World)
		r.NoError(err)
		const flood = 128 << 20
		src := bytes.Repeat([]byte{7}, 2<<20)                                           // two pieces
		r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error { // first contact
			return p.Exchange(ctx, 1-r.Me, src, 1-r.Me, make([]byte, len(src)))
		}))
		if r.Me == 1 {
			_, err := g.team.Register(ctx, "flood", memory.Heap(flood))
			r.NoError(err)
			dst := make([]byte, len(src))
			r.NoError(r.World.Barrier(ctx))
			r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error { return p.Recv(ctx, 0, dst) }))
			r.True(bytes.Equal(src, dst), "%d of %d bytes are there", bytes.Count(dst, []byte{7}), len(dst))
			return
		}
		far, err := g.team.AwaitRegion(ctx, g.team.Members[1], "flood")
		r.NoError(err)
		r.NoError(r.World.Barrier(ctx))
		var full fabric.Request
		r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
			out := transfer{}
			r.NoError(p.prepare(ctx, &out, 1, len(src), false))
			out.end.BeginSend(&out.Message)
			r.NoError(out.end.Send(ctx, &out.Message, src)) // the header
			r.NoError(out.end.Send(ctx, &out.Message, src)) // behind the offer: there is something to tell of
			full, err = far.Start(ctx, &fabric.Put{Body: fabric.Part{Mem: make([]byte, flood)}, Lent: true})
			r.NoError(err)
			for out.More() {
				r.NoError(out.end.Send(ctx, &out.Message, src))
			}
			out.GiveUp()
			return nil
		}))
		r.NoError(full.Wait(ctx))
	})
}
