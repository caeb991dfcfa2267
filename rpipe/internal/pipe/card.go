package pipe

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/gopgas/gopgas/runtime"
)

// A Spec holds the options that both ends of a pipe must share. Each end writes them in its
// card, and compares them with the peer's card.
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
	Heap     uint64
	Type     uint64 // hash of the element's structure
	Size     uint64
	Width    uint32
	Blocks   uint32
	Pull     bool
	Sync     uint8
	Served   bool
	_        uint8
	Summary  uint32 // number of the reader's summary plus 1, or 0
	Place    uint32 // word there
	_        [12]uint8
	Text     [176]uint8 // the structure itself, as far as there is room
	Disowned uint64     // the peer's to store, if the two differ: it puts nothing here
	State    uint64     // cardOpen or cardClosed
}

const (
	CardSize   = 256
	cardDisown = CardSize - 16
	cardState  = CardSize - 8

	magic = 0x0365706970726f67 // "gorpipe", version 3
)

// The states of an end in its card, which a peer sees that is not connected yet.
const (
	cardOpen   = 0
	cardClosed = 1 // the end closed before it was connected: it puts nothing
)

// encode writes a card with the pipe's options to the start of data.
func (s *Spec) encode(data []byte, e SummaryEntry) {
	mine := card{Magic: magic, Heap: uint64(s.Heap), Type: Hash(s.Elem), Size: uint64(s.Size), Width: uint32(s.Width),
		Blocks: uint32(s.blocks), Pull: s.pull, Sync: uint8(s.sync), Served: s.Served, Summary: e.Number, Place: uint32(e.Place)}
	copy(mine.Text[:], s.Elem)
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
	if c.Magic != magic {
		return errNotAPipe
	}
	other := Spec{Elem: s.Elem, Size: int(c.Size), Heap: int(c.Heap), Width: int(c.Width), blocks: int(c.Blocks),
		pull: c.Pull, sync: Sync(c.Sync), Served: c.Served}
	if c.Type != Hash(s.Elem) {
		if other.Elem = text(c.Text[:]); other.Elem == s.Elem {
			other.Elem += "…" // where the texts end, the types differ
		}
	}
	if other == *s {
		return nil
	}
	return &mismatch{rank: rank, peer: peer, mine: *s, theirs: other}
}

// A mismatch is two ends that were not opened alike.
type mismatch struct {
	rank, peer   int
	mine, theirs Spec
}

// Error returns what both ends have, and what the program may do.
func (e *mismatch) Error() string {
	return fmt.Sprintf("the pipe's ends do not match: rank %d opened it as %v, rank %d as %v; give both the same options",
		e.rank, &e.mine, e.peer, &e.theirs)
}

// Unwrap returns the kind of the error.
func (e *mismatch) Unwrap() error { return runtime.ErrMismatch }

// String describes the pipe in the error of ends that do not match.
func (s *Spec) String() string {
	if s.Served {
		return fmt.Sprintf("a heap of %d bytes", s.Heap)
	}
	kind := "push"
	if s.pull {
		kind = "pull"
	}
	return fmt.Sprintf("%s of %s (%d bytes), width %d, heap %d, %d blocks, %v synchronization",
		kind, s.Elem, s.Size, s.Width, s.Heap, s.blocks, s.sync)
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
