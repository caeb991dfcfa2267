package channel

import "encoding/binary"

// An endpoint has memory that its peer alone writes:
//
//	0       64      72      128                   8 KiB
//	| offer | taken |       | slot | slot | ... | rings
//
// The offer says where the peer takes a long message of this rank (see offer). It also says how
// many pieces of the peer's messages have landed. In taken, the peer counts the slots of this
// rank's messages that it freed. Slots and rings hold the peer's messages to this rank.
const (
	offerOffset = 0
	takenOffset = 64
	slotsOffset = 128
	ringsOffset = slotsOffset + Slots*slotSize
)

// A slot holds the header of a message, or of a piece of it:
//
//	0     8       16       24             32         120
//	| seq | chain | length | kind, offset | bytes    | number |
//	  key of call   of the whole message
//
// The low byte of the word at 24 is the kind. The offset above it says where in the message
// the piece begins. The number counts the slots of the channel from 1. It is the last word:
// once the receiver reads it, slot or ring holds the piece.
const (
	// Slots is the number of slots of a channel. Offer, taken and slots fill two pages.
	Slots      = 63
	slotSize   = 128
	slotLength = 16
	slotKind   = 24
	slotBytes  = 32
	slotNumber = slotSize - 8
	// MostInSlot is the length of the longest piece that lies in its slot.
	MostInSlot = slotNumber - slotBytes
	kindBits   = 8
)

// A kind says where the bytes of a piece are.
type kind uint64

const (
	inSlot  kind = iota + 1 // behind the header
	inRing                  // behind those of the piece before
	landing                 // at their destination; the slot has none of them
)

// Size returns the bytes of an endpoint's memory with rings of so many bytes. It begins at a multiple of 64 and is zero
// at first.
func Size(bytes int) int { return ringsOffset + bytes }

// FirstSize is the length of the part of an endpoint's memory ahead of the rings.
const FirstSize = ringsOffset

// slotAt returns the offset of slot k.
func slotAt(k uint64) int { return slotsOffset + int(k%Slots)*slotSize }

// word returns a word of a slot or an offer.
func word(mem []byte, at int) uint64 { return binary.NativeEndian.Uint64(mem[at:]) }

// keyIn returns the key in a slot.
func keyIn(slot []byte) Key { return Key{word(slot, 0), word(slot, 8)} }
