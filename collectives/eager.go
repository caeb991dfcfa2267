package collectives

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/rpipe"
)

// A sender sends short messages eagerly, beside the pipes. It writes header and bytes to
// room that the receiver keeps for it, and a number behind them. Neither end manages a
// heap or a list. That saves about half of the cost of a short message by pipe beyond a
// barrier. For 2 ranks over tcp, an all-reduce of 8 bytes takes 9.7 us by pipe and 8.7 us
// eagerly, a barrier 7.5 us.
//
// Each message has a slot:
//
//	0     8       16       24     32         120
//	| seq | chain | length | turn | bytes    | number |
//
// If the bytes do not fit in the slot, the sender writes all of them to a ring first,
// behind those of the message before. The ring is short: the rings of a few members stay
// in a core's own cache, and the heaps of pipes do not.
//
// The number counts the eager messages from one member to another. The receiver tells the
// sender how many it took, and how far it has freed the ring, after each half of the room.
// A sender that has filled the room waits for that.
const (
	slots      = 64
	slotSize   = 128
	slotNumber = slotSize - 8
	slotMost   = slotNumber - headerSize // bytes of a message in a slot
	// ringPart bounds an eager message: it takes at most 1/ringPart of the ring.
	ringPart = 16
)

// eager is the state of short messages with a partner.
type eager struct {
	row           []byte // of this member; the partner writes it
	sent, taken   uint64
	filled, freed uint64 // positions in the partner's ring and in this one, never wrapped
	seen          uint64 // number of the partner's latest message that look saw
}

// ringFor returns the size of a ring beside a pipe's heap.
func ringFor(heap int) int { return heap / 4 }

// eagerMost returns the length of the longest eager message.
func (p *transport) eagerMost() int { return p.ring / ringPart }

// slot returns the offset in a row of message k's slot.
func slot(k uint64) int { return rowSlots + int(k%slots)*slotSize }

// nextSlot returns the slot of the partner's next message.
func (e *eager) nextSlot() []byte { return e.row[slot(e.taken+1):][:slotSize] }

// next returns the number in the next slot.
func (e *eager) next() uint64 { return atomics.Word64(e.nextSlot()[slotNumber:]).Load() }

// came reports whether the partner's next message has arrived.
func (e *eager) came() bool { return e.next() > e.taken }

// unexpected reports whether the next message has arrived and look has not seen it.
func (e *eager) unexpected() bool { return e.seen <= e.taken && e.came() }

// look takes note of the next message, if it has arrived.
func (e *eager) look() {
	if e.came() {
		e.seen = e.taken + 1
	}
}

// ringed reports whether the bytes of a short message lie in the ring.
func (t *transfer) ringed() bool { return t.bytes > slotMost }

// inRing places the bytes of a message behind position from in the ring. It returns their
// offset in a row and the position of their end. Positions never wrap. The bytes lie in one
// piece, of whole cache lines.
func (p *transport) inRing(t *transfer, from uint64) (begin int, end uint64) {
	const line = 64
	ring, size := uint64(p.ring), uint64(t.bytes+line-1)&^(line-1)
	if left := ring - from%ring; left < size {
		from += left
	}
	return rowRing + int(from%ring), from + size
}

// sendEager sends a short message.
func (p *transport) sendEager(ctx context.Context, t *transfer, src []byte) error {
	with := &p.partners[t.member]
	e := &with.eager
	if err := p.reach(ctx, t.member); err != nil {
		return err
	}
	if err := p.awaitRoom(ctx, t, rowTaken, e.sent, e.sent+1, slots); err != nil {
		return err
	}
	if !t.ringed() {
		p.fillSlot(t, src)
		return p.putSlot(ctx, with, fabric.Part{})
	}
	begin, end := p.inRing(t, e.filled)
	if err := p.awaitRoom(ctx, t, rowFreed, e.filled, end, p.ring); err != nil {
		return err
	}
	e.filled = end
	p.fillSlot(t, nil)
	return p.putSlot(ctx, with, fabric.Part{At: begin, Mem: src, Path: fabric.Inline})
}

// putSlot writes the bytes for the ring and then the slot. The number is the last word:
// once the receiver reads it, ring and slot are complete.
func (p *transport) putSlot(ctx context.Context, with *partner, ringed fabric.Part) error {
	body := fabric.Part{At: slot(with.eager.sent), Mem: p.slot[:]}
	return with.there.Put(ctx, &fabric.Put{Head: ringed, Body: body, Tell: fabric.TellByLastWord})
}

// fillSlot composes the next slot.
func (p *transport) fillSlot(t *transfer, bytes []byte) {
	e := &p.partners[t.member].eager
	e.sent++
	p.header(p.slot[:], t)
	n := copy(p.slot[headerSize:], bytes)
	clear(p.slot[headerSize+n:]) // the bytes of an earlier message
	binary.NativeEndian.PutUint64(p.slot[slotNumber:], e.sent)
}

// awaitRoom waits until the receiver has taken enough of the sent messages to leave room
// up to an end. The receiver counts what it took in a word of the row.
func (p *transport) awaitRoom(ctx context.Context, t *transfer, word int, sent, end uint64, room int) error {
	if end <= uint64(room) {
		return nil
	}
	taken := p.partners[t.member].eager.row[word:]
	if err := p.awaitWord(ctx, t, taken, end-uint64(room)); err != nil {
		return err
	}
	if says := atomics.Word64(taken).Load(); says > sent {
		return fmt.Errorf("rank %d says it took %d of %d short messages, or bytes of them: %w", t.member, says, sent, rpipe.ErrCorrupt)
	}
	return nil
}

// takeEager takes a short message.
func (p *transport) takeEager(ctx context.Context, t *transfer, into *sink) error {
	e := &p.partners[t.member].eager
	mem := e.nextSlot()
	if err := p.awaitWord(ctx, t, mem[slotNumber:], e.taken+1); err != nil {
		return err
	}
	if number := e.next(); number != e.taken+1 {
		return fmt.Errorf("short message %d from rank %d in place of %d: %w", number, t.member, e.taken+1, rpipe.ErrCorrupt)
	}
	if err := p.expect(ctx, t, mem); err != nil {
		return err
	}
	if !t.ringed() {
		into.take(0, mem[headerSize:][:t.bytes])
	} else if err := p.takeRinged(ctx, t, into); err != nil {
		return err
	}
	e.taken++
	return p.tell(ctx, t, rowTaken, e.taken-1, e.taken, slots)
}

// takeRinged takes the bytes of a short message out of the ring.
func (p *transport) takeRinged(ctx context.Context, t *transfer, into *sink) error {
	e := &p.partners[t.member].eager
	before := e.freed
	begin, end := p.inRing(t, before)
	into.take(0, e.row[begin:][:t.bytes])
	e.freed = end
	return p.tell(ctx, t, rowFreed, before, end, p.ring)
}

// tell tells the sender how much this member took by now, after each half of the room.
func (p *transport) tell(ctx context.Context, t *transfer, word int, before, now uint64, room int) error {
	if !newHalf(before, now, room) {
		return nil
	}
	if err := p.reach(ctx, t.member); err != nil {
		return err
	}
	return p.partners[t.member].there.PostFlag(ctx, fabric.Flag{Offset: word, Value: now, Ahead: true})
}

// newHalf reports whether a count moved from one half of the room to another.
func newHalf(before, now uint64, room int) bool {
	half := uint64(room / 2)
	return before/half != now/half
}
