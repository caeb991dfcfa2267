package channel

import "encoding/binary"

// An endpoint has memory that its peer alone writes:
//
//	0       64      72      128                   8 KiB + 128
//	| offer | taken |       | slot | slot | ... | ring
//
// The offer says where the peer takes a long message of this rank, and how many pieces of
// the peer's messages have landed (see offer). In taken, the peer counts the slots of this
// rank's messages that it freed. Slots and ring hold the peer's messages to this rank.
const (
	offerOffset = 0
	takenOffset = 64
	slotsOffset = 128
	ringOffset  = slotsOffset + Slots*slotSize
)

// A slot holds the header of a message, or of a piece of it:
//
//	0     8       16       24             32         120
//	| seq | chain | length | kind, offset | bytes    | number |
//	  key of call   of the whole message
//
// The low byte of the word at 24 is the kind. The offset above it says where in the message
// the piece begins. The number counts the slots of the channel from 1. It is the last word:
// once the receiver reads it, slot and ring hold the piece.
const (
	// Slots is the number of slots of a channel.
	Slots      = 64
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

// piecesInRing is the number of the longest pieces that a ring holds.
const piecesInRing = 4

// MostPiece returns the length of the longest piece in a ring of so many bytes.
func MostPiece(ring int) int { return ring / piecesInRing }

// Size returns the bytes of an endpoint's memory. It begins at a multiple of 64 and is zero
// at first.
func Size(ring int) int { return ringOffset + ring }

// slotAt returns the offset of slot k.
func slotAt(k uint64) int { return slotsOffset + int(k%Slots)*slotSize }

// inRingBehind places n bytes behind a position in the ring. It returns their offset in the
// ring and the position of their end. Positions never wrap. The bytes lie in one part, of
// whole cache lines.
func inRingBehind(position uint64, n, ring int) (begin int, end uint64) {
	const line = 64
	all, size := uint64(ring), uint64(n+line-1)&^(line-1)
	if left := all - position%all; left < size {
		position += left
	}
	return int(position % all), position + size
}

// word returns a word of a slot or an offer.
func word(mem []byte, at int) uint64 { return binary.NativeEndian.Uint64(mem[at:]) }

// keyIn returns the key in a slot.
func keyIn(slot []byte) Key { return Key{word(slot, 0), word(slot, 8)} }
