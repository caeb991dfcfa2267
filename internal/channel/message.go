package channel

import (
	"context"
	"math"

	"github.com/gopgas/gopgas/internal/fabric"
)

// A Key names the collective call of a message.
type Key struct{ Seq, Chain uint64 }

// A Message is one message in progress, at its sender or at its receiver. The two ends give
// it the same values.
type Message struct {
	Key   Key
	Bytes int
	Piece int  // bytes of each piece but the last, at most MostPiece; not of one that lands
	Lands bool // the receiver offers its memory
	// Private is true if the two ends alone know the length. The header of a message that
	// lands is then sent before the offer comes: the receiver may make none.
	Private bool

	steps, done int
	number      uint64         // of a message that lands, in its direction
	before      uint64         // pieces that landed for the messages ahead of it
	under       fabric.Request // the write of the piece that lands now
}

// Lead bounds the steps that a member sends ahead of those that it has received, if it does
// both. The package doc has the reason.
const Lead = 2

// longest is the length of all landing pieces of a message but the last. Longer ones save
// little: two that go in opposite directions fill the sockets' buffers, and their bytes have
// left the caches when the receiver reads them.
const longest = 1 << 20

// begin counts the steps of a message: its pieces, and a header ahead of those that land.
func (m *Message) begin() {
	m.done = 0
	if m.Lands {
		m.steps = 1 + pieces(m.Bytes, longest)
		return
	}
	m.steps = max(1, pieces(m.Bytes, m.Piece))
}

// pieces returns the number of pieces of so many bytes.
func pieces(bytes, piece int) int { return (bytes + piece - 1) / piece }

// More reports whether the message has steps left.
func (m *Message) More() bool { return m.done < m.steps }

// Done returns the number of steps that were made.
func (m *Message) Done() int { return m.done }

// NextLands reports whether the next step is a piece that lands.
func (m *Message) NextLands() bool { return m.Lands && m.done > 0 }

// span returns the bounds of the bytes of the next step.
func (m *Message) span() (lo, hi int) {
	switch {
	case m.NextLands():
		lo = (m.done - 1) * longest
		return lo, min(lo+longest, m.Bytes)
	case m.Lands:
		return 0, 0
	}
	lo = m.done * m.Piece
	return lo, min(lo+m.Piece, m.Bytes)
}

// landings returns the number of pieces that land.
func (m *Message) landings() uint64 { return uint64(m.steps - 1) }

// landed returns the number of pieces that have landed once the next one has.
func (m *Message) landed() uint64 { return m.before + uint64(m.done) }

// kindWord returns the word of a slot that has the offset and the kind of a piece.
func (m *Message) kindWord(at, bytes int) uint64 {
	k := inSlot
	switch {
	case m.Lands:
		k = landing
	case bytes > MostInSlot:
		k = inRing
	}
	return uint64(at)<<kindBits | uint64(k)
}

// same returns an error unless key and length, as the peer says them, are those of m.
func (m *Message) same(key Key, bytes uint64) error {
	switch {
	case key != m.Key:
		return &Differs{Seq: key.Seq}
	case bytes != uint64(m.Bytes):
		return &LengthError{Theirs: int(min(bytes, math.MaxInt)), Mine: m.Bytes}
	}
	return nil
}

// Wait waits until the bytes of a sent message are the caller's again.
func (m *Message) Wait(ctx context.Context) error { return m.under.Wait(ctx) }

// GiveUp takes back the memory from which a message is sent.
func (m *Message) GiveUp() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.under.Wait(ended) // the caller has the reason
}
