package channel

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
)

// incoming is the state of the channel from the peer.
type incoming struct {
	taken  uint64    // slots that this rank freed
	freed  positions // behind them
	next   positions // behind the step that Next returned
	told   uint64    // slots of which this rank told the peer
	before positions // behind them
	given  uint64    // messages that land
	pieces uint64    // of them
	place  fabric.Landing
	offer  [offerSize]byte
}

// slot returns the peer's next slot.
func (in *incoming) slot(e *End) []byte { return e.Memory[slotAt(in.taken+1):][:slotSize] }

// arrived reports whether the peer's next slot has arrived.
func (e *End) arrived() bool {
	return atomics.Word64(e.in.slot(e)[slotNumber:]).Load() > e.in.taken
}

// anotherCall reports whether the peer's next slot has arrived and belongs to a call other
// than that of the wait.
func (in *incoming) anotherCall(e *End) bool {
	return e.arrived() && keyIn(in.slot(e)) != e.wait.key
}

// BeginReceive begins the transfer of a message from the peer. It offers dst, if the message
// lands. Until Shut, the peer may then write to dst.
func (e *End) BeginReceive(ctx context.Context, m *Message, dst []byte) error {
	m.begin()
	if !m.Lands {
		return nil
	}
	e.in.given++
	m.number, m.before = e.in.given, e.in.pieces
	e.in.pieces += m.landings()
	return e.offer(ctx, m, dst)
}

// Next waits for the next step of a message from the peer. It returns the piece that came,
// and its offset in the message. The piece is the caller's until Free. A piece that lands is
// in its place already: Next returns no bytes for it, and none for a header alone.
func (e *End) Next(ctx context.Context, m *Message) (at int, piece []byte, err error) {
	if m.NextLands() {
		return 0, nil, e.await(ctx, m, e.Memory[offerOffset+offerLanded:], m.landed())
	}
	in := &e.in
	slot := in.slot(e)
	if err := e.await(ctx, m, slot[slotNumber:], in.taken+1); err != nil {
		return 0, nil, err
	}
	lo, hi := m.span()
	if err := e.check(m, m.kindWord(lo, hi-lo), slot); err != nil {
		return 0, nil, err
	}
	in.next = in.freed
	if hi-lo <= MostInSlot {
		return lo, slot[slotBytes:][:hi-lo], nil
	}
	which := e.ringOf(hi - lo)
	begin, end := e.rings[which].behind(in.freed[which], hi-lo)
	in.next[which] = end
	return lo, e.Memory[begin:][:hi-lo], nil
}

// check compares the peer's next slot with the next step of a message.
func (e *End) check(m *Message, kind uint64, slot []byte) error {
	if number := atomics.Word64(slot[slotNumber:]).Load(); number != e.in.taken+1 {
		return fmt.Errorf("slot %d in place of %d: %w", number, e.in.taken+1, ErrCorrupt)
	}
	if err := m.same(keyIn(slot), word(slot, slotLength)); err != nil {
		return err
	}
	if says := word(slot, slotKind); says != kind {
		return fmt.Errorf("piece of kind and offset %#x in place of %#x: %w", says, kind, ErrCorrupt)
	}
	return nil
}

// Free ends the step that Next returned, and gives its room back. It tells the peer after
// each half of the slots, each quarter of the short ring and each piece in the long ring.
func (e *End) Free(ctx context.Context, m *Message) error {
	landed := m.NextLands()
	m.done++
	if landed {
		return nil
	}
	in := &e.in
	in.taken++
	in.freed = in.next
	if !in.due(&e.rings) {
		return nil
	}
	in.told, in.before = in.taken, in.freed
	if err := e.reach(ctx); err != nil {
		return err
	}
	return e.there.PostFlag(ctx, fabric.Flag{Offset: takenOffset, Value: in.taken, Ahead: true})
}

// due reports whether this rank must tell the peer the count of freed slots.
func (in *incoming) due(all *[rings]ring) bool {
	for i := range all {
		if freed := in.freed[i] - in.before[i]; freed > 0 && freed >= all[i].tell {
			return true
		}
	}
	return in.taken-in.told >= Slots/2
}
