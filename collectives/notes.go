package collectives

import (
	"context"
	"encoding/binary"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
)

// Short messages go as notes, beside the pipes: header and bytes go into a slot that the
// receiver has for the sender, with a number behind them that tells of both. There is no
// heap and no list to look after, which is most of what a short message by pipe costs its
// two ends (2 ranks over tcp, all-reduce of 8 bytes: 9.7 us by pipe, 8.7 by notes).
//
// A slot:
//
//	0      8      16       24         120
//	| call | mark | length | bytes    | number |
//
// The number counts the notes from one member to the other. Who takes them says how many
// it took, each time that is half of the slots; and who has sent as many as there are
// slots waits for that.
const (
	noteSize   = 128
	noteNumber = noteSize - 8
	noteMost   = noteNumber - headerSize // bytes of a message
	// mostSlots let one send many notes that nobody waits for. Where members are very
	// many they have fewer, of allSlots together, but no less than leastSlots each: an
	// exchange sends lead ahead, and hears of half of them.
	mostSlots, leastSlots = 64, 2 * lead
	allSlots              = 8 << 10
)

// slotsFor returns how many slots each member of n has for each other one.
func slotsFor(n int) int { return min(max(allSlots/n&^1, leastSlots), mostSlots) }

// notes are those between this member and another.
type notes struct {
	sent, taken uint64
	seen        uint64 // the latest of the other's that was looked at
}

// slot returns where in a row note k lies.
func (p *pipes) slot(k uint64) int { return rowSlots + int(k%uint64(p.slots))*noteSize }

// nextNote returns the slot of a member's next note.
func (p *pipes) nextNote(member int) []byte {
	return p.row(member)[p.slot(p.partners[member].notes.taken+1):][:noteSize]
}

// noteCame tells whether a member's next note is there.
func (p *pipes) noteCame(member int) bool {
	return atomics.Word64(p.nextNote(member)[noteNumber:]).Load() > p.partners[member].notes.taken
}

// sendNote sends a short message.
func (p *pipes) sendNote(ctx context.Context, c *course, src []byte) error {
	with := &p.partners[c.member]
	n := &with.notes
	if slots := uint64(p.slots); n.sent >= slots {
		if err := p.told(ctx, c, p.row(c.member)[rowTaken:], n.sent+1-slots, false); err != nil {
			return err
		}
	}
	n.sent++
	p.header(p.card[:], len(src))
	copy(p.card[headerSize:], src)
	binary.NativeEndian.PutUint64(p.card[noteNumber:], n.sent)
	return with.there.WriteWhole(ctx, p.Rank()*p.rowSize()+p.slot(n.sent), p.card[:])
}

// takeNote takes a short message.
func (p *pipes) takeNote(ctx context.Context, c *course, into *sink) error {
	with, mem := &p.partners[c.member], p.nextNote(c.member)
	n := &with.notes
	if err := p.told(ctx, c, mem[noteNumber:], n.taken+1, true); err != nil {
		return err
	}
	says, err := p.check(ctx, c, mem)
	if err != nil {
		return err
	}
	if says != c.bytes {
		return p.group.unlike(c.member, says, c.bytes)
	}
	into.take(0, mem[headerSize:][:c.bytes])
	if n.taken++; n.taken%uint64(p.slots/2) != 0 {
		return nil
	}
	return with.there.PostFlag(ctx, fabric.Flag{Offset: p.Rank()*p.rowSize() + rowTaken, Value: n.taken, Ahead: true})
}
