package pipe

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/gopgas/gopgas/runtime"
)

// A Spec holds the options that both ends of a pipe must share. Each end writes them in its
// card as a text, and compares its text with that of the peer's card.
type Spec struct {
	Elem   string // structure of the element's type
	Size   int    // bytes of one element
	Heap   int
	Width  int
	blocks int
	pull   bool
	sync   Sync
	Served bool // no pipe, but a heap that one end serves to the other
}

// A card lies at the start of an end's data, in little-endian numbers. Only the last two fields
// ever change; each is a word by itself.
type card struct {
	Magic    uint64
	Hash     uint64     // of the text of the Spec
	Summary  uint32     // number of the reader's summary plus 1, or 0
	Place    uint32     // word there
	Text     [208]uint8 // the text itself, as far as there is room
	_        [8]uint8
	Disowned uint64 // the peer's to store, if the two differ: it puts nothing here
	State    uint64 // cardOpen or cardClosed
}

const (
	CardSize   = 256
	cardDisown = CardSize - 16
	cardState  = CardSize - 8

	magic = 0x0465706970726f67 // "gorpipe", version 4
)

// The states of an end in its card, which a peer sees that is not connected yet.
const (
	cardOpen   = 0
	cardClosed = 1 // the end closed before it was connected: it puts nothing
)

// encode writes a card with the pipe's options to the start of data.
func (s *Spec) encode(data []byte, e SummaryEntry) {
	options := s.String()
	mine := card{Magic: magic, Hash: Hash(options), Summary: e.Number, Place: uint32(e.Place)}
	copy(mine.Text[:], options)
	_, _ = binary.Encode(data, binary.LittleEndian, &mine) // data has room for it
}

// decode reads the card at the start of data, which has room for one.
func decode(data []byte) (c card) {
	_, _ = binary.Decode(data, binary.LittleEndian, &c)
	return c
}

// entry returns the word of a summary that the card of a reader names.
func (c *card) entry() SummaryEntry {
	if c.Magic != magic {
		return SummaryEntry{}
	}
	return SummaryEntry{c.Summary, int(c.Place)}
}

// compare returns nil if the peer's card says what s says, else runtime.ErrMismatch, which
// names what the two ends have.
func (s *Spec) compare(c *card, rank, peer int) error {
	mine := s.String()
	switch {
	case c.Magic != magic:
		return errNotAPipe
	case c.Hash == Hash(mine):
		return nil
	}
	theirs := text(c.Text[:])
	if theirs == mine {
		theirs += "…" // where the texts end, the options differ
	}
	return &mismatch{rank: rank, peer: peer, mine: mine, theirs: theirs}
}

// A mismatch is two ends that were not opened alike.
type mismatch struct {
	rank, peer   int
	mine, theirs string
}

// Error returns what both ends have, and what the program may do.
func (e *mismatch) Error() string {
	return fmt.Sprintf("the pipe's ends do not match: rank %d opened it as %s, rank %d as %s; give both the same options",
		e.rank, e.mine, e.peer, e.theirs)
}

// Unwrap returns the kind of the error.
func (e *mismatch) Unwrap() error { return runtime.ErrMismatch }

// String describes the pipe. Two ends fit each other if their descriptions are the same. The type comes last: it
// may be long.
func (s *Spec) String() string {
	if s.Served {
		return fmt.Sprintf("a heap of %d bytes", s.Heap)
	}
	kind := "push"
	if s.pull {
		kind = "pull"
	}
	return fmt.Sprintf("%s, width %d, heap %d, %d blocks, %v synchronization, elements of %d bytes: %s",
		kind, s.Width, s.Heap, s.blocks, s.sync, s.Size, s.Elem)
}

// Hash returns a number of 64 bits for a string, the same at all ranks.
func Hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// text returns the bytes of a card's text up to its end.
func text(b []byte) string {
	whole, _, ends := bytes.Cut(b, []byte{0})
	if !ends {
		return string(b) + "…"
	}
	return string(whole)
}
