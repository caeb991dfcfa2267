package channel

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/testjob"
)

var errNothingCame = errors.New("nothing came")

// alone returns an endpoint without a peer, in memory of its own.
func alone(ring int) *End {
	return New(Config{Memory: make([]byte, Size(ring)), Ring: ring,
		Await: func(_ context.Context, ready func() bool) error {
			if ready() {
				return nil
			}
			return errNothingCame
		}})
}

// TestSlotThatHoldsNoMessageReturnsErrCorrupt writes one word of a slot that a correct sender never
// writes there.
func TestSlotThatHoldsNoMessageReturnsErrCorrupt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := alone(4 << 10)
		m := Message{Key: key, Bytes: rapid.IntRange(0, 3000).Draw(t, "bytes"), Piece: MostPiece(e.Ring)}
		require.NoError(t, e.BeginReceive(t.Context(), &m, nil))
		lo, hi := m.span()
		e.out.sent = 1
		e.out.fill(&m, m.kindWord(lo, hi-lo), nil)
		at := rapid.SampledFrom([]int{0, 8, slotLength, slotKind, slotNumber}).Draw(t, "word")
		right := binary.NativeEndian.Uint64(e.out.slot[at:])
		wrong := rapid.Uint64().Filter(func(w uint64) bool { return w != right }).Draw(t, "wrong")
		binary.NativeEndian.PutUint64(e.out.slot[at:], wrong)
		copy(e.Memory[slotAt(1):], e.out.slot[:])
		_, _, err := e.Next(t.Context(), &m)
		var differs *Differs
		var length *LengthError
		switch {
		case at < slotLength:
			require.ErrorAs(t, err, &differs)
		case at == slotLength:
			require.ErrorAs(t, err, &length)
			require.GreaterOrEqual(t, length.Theirs, 0)
		case at == slotNumber && wrong == 0:
			require.ErrorIs(t, err, errNothingCame)
		default:
			require.ErrorIs(t, err, ErrCorrupt)
		}
	})
}

// TestRandomMemoryIsNoMessage fills the whole memory of an endpoint with random words.
func TestRandomMemoryIsNoMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := alone(1 << 10)
		seed := rapid.Uint64().Draw(t, "seed")
		for at := 0; at < len(e.Memory); at += 8 {
			seed = seed*6364136223846793005 + 1442695040888963407
			binary.NativeEndian.PutUint64(e.Memory[at:], seed)
		}
		m := Message{Key: key, Bytes: rapid.IntRange(0, 3000).Draw(t, "bytes"), Piece: MostPiece(e.Ring)}
		require.NoError(t, e.BeginReceive(t.Context(), &m, nil))
		_, _, err := e.Next(t.Context(), &m)
		require.Error(t, err)
		e.out.sent = Slots
		require.Error(t, e.awaitRoom(t.Context(), &m, short, 0))
		m.number = 1
		_, err = e.offered(t.Context(), &m)
		require.Error(t, err)
	})
}

// TestMoreFreedThanWereSentIsRefused has the peer free more slots than this rank sent.
func TestMoreFreedThanWereSentIsRefused(t *testing.T) {
	for _, bytes := range lengths {
		testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
			e := endOf(ctx, r, 0, 4<<10)
			fill(ctx, r, e, bytes)
			binary.NativeEndian.PutUint64(e.Memory[takenOffset:], e.out.sent+1)
			m, mem := message(e, 1, bytes, false)
			r.ErrorIs(sendAll(ctx, e, &m, mem), ErrCorrupt)
		})
	}
}

// TestOffersOfAnotherMessageAreRefused changes one word of an offer.
func TestOffersOfAnotherMessageAreRefused(t *testing.T) {
	for at, want := range map[int]any{24: new(*Differs), 32: new(*Differs), 40: new(*LengthError)} {
		e := alone(1 << 10)
		m := Message{Key: key, Bytes: 5000, Lands: true}
		e.BeginSend(&m)
		for i, w := range [...]uint64{1, 2, 3, key.Seq, key.Chain, 5000, 1} {
			binary.NativeEndian.PutUint64(e.Memory[offerOffset+8*i:], w)
		}
		offered, err := e.offered(t.Context(), &m)
		require.NoError(t, err)
		require.EqualValues(t, 1, offered.Addr)
		e.Memory[offerOffset+at] ^= 1
		_, err = e.offered(t.Context(), &m)
		require.ErrorAs(t, err, want)
	}
}
