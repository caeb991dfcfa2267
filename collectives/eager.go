package collectives

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/rpipe"
)

// Short messages are sent eagerly, beside the pipes: header and bytes go to where the
// receiver has room for the sender's, with a number behind them that tells of both. There
// is no heap and no list to look after, which is about half of what a short message by pipe
// costs beyond a barrier's (2 ranks over tcp, all-reduce of 8 bytes: 9.7 us by pipe, 8.7
// so, a barrier 7.5).
//
// A message has a slot:
//
//	0     8       16       24     32         120
//	| seq | chain | length | turn | bytes    | number |
//
// If there are more bytes than fit in it, they all lie in a ring, one message's behind the
// other's, and are written ahead of the slot. The ring is short, so that those of a few
// members stay in a core's own cache, where the heaps of pipes do not.
//
// The number counts the eager messages from one member to the other. Who takes them says
// how many it took, and how far it has freed the ring, each when it has come past another
// half of the room; and who has sent as many as there is room for waits for that.
const (
	slots      = 64
	slotSize   = 128
	slotNumber = slotSize - 8
	slotMost   = slotNumber - headerSize // bytes of a message
	// ringPart is which part of the ring an eager message takes at most.
	ringPart = 16
)

// eager is the state of short messages with a partner.
type eager struct {
	row           []byte // this member's, which the other writes
	sent, taken   uint64
	filled, freed uint64 // up to where the other's ring and this one's are, over and over
	seen          uint64 // the latest of the other's that was looked at
}

// ringFor returns the size of a ring beside a pipe's heap.
func ringFor(heap int) int { return heap / 4 }

// eagerMost returns how many bytes an eager message has at most.
func (p *transport) eagerMost() int { return p.ring / ringPart }

// slot returns where in a row message k lies.
func slot(k uint64) int { return rowSlots + int(k%slots)*slotSize }

// nextSlot returns the slot of the other's next message.
func (e *eager) nextSlot() []byte { return e.row[slot(e.taken+1):][:slotSize] }

// next returns the number in it.
func (e *eager) next() uint64 { return atomics.Word64(e.nextSlot()[slotNumber:]).Load() }

// came tells whether the other's next message is there.
func (e *eager) came() bool { return e.next() > e.taken }

// stray tells whether it is, and was not looked at.
func (e *eager) stray() bool { return e.seen <= e.taken && e.came() }

// look takes note of it.
func (e *eager) look() {
	if e.came() {
		e.seen = e.taken + 1
	}
}

// ringed tells whether the bytes of a short message lie in the ring.
func (t *transfer) ringed() bool { return t.bytes > slotMost }

// inRing returns where in a row the bytes of a message begin that follow what lies in the
// ring up to from, and where they end, over and over. They lie in one piece, of whole cache
// lines.
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

// putSlot writes the slot behind what lies in the ring. The number, its last word, tells
// of both.
func (p *transport) putSlot(ctx context.Context, with *partner, ringed fabric.Part) error {
	body := fabric.Part{At: slot(with.eager.sent), Mem: p.slot[:]}
	return with.there.Put(ctx, &fabric.Put{Head: ringed, Body: body, Tell: fabric.TellByLastWord})
}

// fillSlot writes what goes to the next slot.
func (p *transport) fillSlot(t *transfer, bytes []byte) {
	e := &p.partners[t.member].eager
	e.sent++
	p.header(p.slot[:], t)
	n := copy(p.slot[headerSize:], bytes)
	clear(p.slot[headerSize+n:]) // what was sent to others
	binary.NativeEndian.PutUint64(p.slot[slotNumber:], e.sent)
}

// awaitRoom returns when the other has taken so much of what was sent that there is room
// up to an end. A word of the row says how much it took.
func (p *transport) awaitRoom(ctx context.Context, t *transfer, word int, sent, end uint64, room int) error {
	if end <= uint64(room) {
		return nil
	}
	taken := p.partners[t.member].eager.row[word:]
	if err := p.told(ctx, t, taken, end-uint64(room)); err != nil {
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
	if err := p.told(ctx, t, mem[slotNumber:], e.taken+1); err != nil {
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

// tell tells the sender how much was taken by now, if that has come past a half of the room.
func (p *transport) tell(ctx context.Context, t *transfer, word int, before, now uint64, room int) error {
	if !newHalf(before, now, room) {
		return nil
	}
	if err := p.reach(ctx, t.member); err != nil {
		return err
	}
	return p.partners[t.member].there.PostFlag(ctx, fabric.Flag{Offset: word, Value: now, Ahead: true})
}

// newHalf tells whether what is counted over and over has come to another half of the room.
func newHalf(before, now uint64, room int) bool {
	half := uint64(room / 2)
	return before/half != now/half
}
