package pipe

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/gopgas/gopgas/runtime"
)

// A Spec holds the options that both ends of a pipe must share. Each end writes it as
// a card at the start of its data, and compares it with the peer's card. Numbers are
// little-endian:
//
//	0      8     16         24    32     36      40    41    42      44       48     64          240       248
//	magic  heap  type hash  size  width  blocks  pull  sync  served  summary  group  type, text  disowned  state
//
// Only the last two ever change; each is a word by itself. Disowned is the other
// end's to store, if the two differ: it puts nothing here. Summary and group are the
// reader's alone.
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

const (
	CardSize = 256

	cardMagic   = 0
	cardHeap    = 8
	cardType    = 16 // hash of the element's structure
	cardSizeOf  = 24
	cardWidth   = 32
	cardBlocks  = 36
	cardPull    = 40
	cardSync    = 41
	cardServed  = 42
	cardSummary = 44 // number of the reader's summary plus 1, or 0
	cardGroup   = 48 // word there
	cardText    = 64 // the structure itself, as far as there is room
	cardDisown  = CardSize - 16
	cardState   = CardSize - 8 // cardOpen or cardClosed

	magic = 0x0165706970726f67 // "gorpipe", version 1
)

// The states of an end in its card, which a peer sees that is not connected yet.
const (
	cardOpen   = 0
	cardClosed = 1 // the end closed before it was connected: it puts nothing
)

// encode writes the card.
func (s *Spec) encode(card []byte) {
	le := binary.LittleEndian
	le.PutUint64(card[cardMagic:], magic)
	le.PutUint64(card[cardHeap:], uint64(s.Heap))
	le.PutUint64(card[cardType:], Hash(s.Elem))
	le.PutUint64(card[cardSizeOf:], uint64(s.Size))
	le.PutUint32(card[cardWidth:], uint32(s.Width))
	le.PutUint32(card[cardBlocks:], uint32(s.blocks))
	card[cardPull], card[cardSync], card[cardServed] = truth(s.pull), byte(s.sync), truth(s.Served)
	copy(card[cardText:cardDisown], s.Elem)
}

// compare looks at the peer's card: nil when it says what s says, else
// runtime.ErrMismatch naming what the two ends have.
func (s *Spec) compare(card []byte, rank, peer int) error {
	le := binary.LittleEndian
	if le.Uint64(card[cardMagic:]) != magic {
		return errNotAPipe
	}
	other := Spec{Elem: s.Elem, Size: int(le.Uint64(card[cardSizeOf:])), Heap: int(le.Uint64(card[cardHeap:])),
		Width: int(le.Uint32(card[cardWidth:])), blocks: int(le.Uint32(card[cardBlocks:])),
		pull: card[cardPull] != 0, sync: Sync(card[cardSync]), Served: card[cardServed] != 0}
	if le.Uint64(card[cardType:]) != Hash(s.Elem) {
		if other.Elem = text(card[cardText:cardDisown]); other.Elem == s.Elem {
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

func (e *mismatch) Error() string {
	return fmt.Sprintf("the pipe's ends do not match: rank %d opened it as %v, rank %d as %v; give both the same options",
		e.rank, &e.mine, e.peer, &e.theirs)
}

func (e *mismatch) Unwrap() error { return runtime.ErrMismatch }

func truth(b bool) byte {
	if b {
		return 1
	}
	return 0
}

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
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b) + "…"
}
