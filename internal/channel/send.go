package channel

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
)

// outgoing is the state of the channel to the peer.
type outgoing struct {
	sent   uint64    // slots
	filled positions // behind them
	known  uint64    // slots of which this rank knows that the peer freed them
	freed  positions // behind them
	ends   [Slots]positions
	slot   [slotSize]byte
	given  uint64 // messages that land
	pieces uint64 // of them
}

// BeginSend begins the transfer of a message to the peer.
func (e *End) BeginSend(m *Message) {
	m.begin()
	if m.Lands {
		e.out.given++
		m.number, m.before = e.out.given, e.out.pieces
		e.out.pieces += m.landings()
	}
}

// Send makes the next step of a message to the peer. It sends a header, with the next piece
// of src or ahead of the pieces that land; or it sends such a piece. It waits for room or
// for the receiver's offer.
func (e *End) Send(ctx context.Context, m *Message, src []byte) error {
	err := e.reach(ctx)
	if err != nil {
		return err
	}
	if m.Lands && m.done == 0 && !m.Private {
		if _, err = e.offered(ctx, m); err != nil { // header and piece leave together
			return err
		}
	}
	if lo, hi := m.span(); m.NextLands() {
		err = e.land(ctx, m, lo, src[lo:hi])
	} else {
		err = e.sendSlot(ctx, m, lo, src[lo:hi])
	}
	m.done++
	return err
}

// sendSlot sends the next slot with the piece at an offset of a message.
func (e *End) sendSlot(ctx context.Context, m *Message, at int, piece []byte) error {
	o := &e.out
	var ringed fabric.Part
	kind, which, end := m.kindWord(at, len(piece)), short, o.filled[short]
	if len(piece) > MostInSlot {
		which = e.ringOf(len(piece))
		ringed = fabric.Part{Mem: piece, Path: fabric.Inline}
		ringed.At, end = e.rings[which].behind(o.filled[which], len(piece))
		piece = nil
	}
	if err := e.awaitRoom(ctx, m, which, end); err != nil {
		return err
	}
	o.sent++
	o.filled[which] = end
	o.ends[o.sent%Slots] = o.filled
	o.fill(m, kind, piece)
	body := fabric.Part{At: slotAt(o.sent), Mem: o.slot[:]}
	return e.there.Put(ctx, &fabric.Put{Head: ringed, Body: body, Tell: fabric.TellByLastWord})
}

// fill composes the next slot.
func (o *outgoing) fill(m *Message, kind uint64, piece []byte) {
	slot := &o.slot
	binary.NativeEndian.PutUint64(slot[0:], m.Key.Seq)
	binary.NativeEndian.PutUint64(slot[8:], m.Key.Chain)
	binary.NativeEndian.PutUint64(slot[slotLength:], uint64(m.Bytes))
	binary.NativeEndian.PutUint64(slot[slotKind:], kind)
	n := copy(slot[slotBytes:slotNumber], piece)
	clear(slot[slotBytes+n : slotNumber]) // the bytes of an earlier message
	binary.NativeEndian.PutUint64(slot[slotNumber:], o.sent)
}

// awaitRoom waits until the peer has freed a slot, and enough of a ring for a piece that ends
// at a position.
func (e *End) awaitRoom(ctx context.Context, m *Message, which int, end uint64) error {
	o, room := &e.out, uint64(e.rings[which].size)
	want, freed := o.known, o.freed[which]
	for o.sent+1-want > Slots || end-freed > room {
		want++
		freed = o.ends[want%Slots][which]
	}
	if want == o.known {
		return nil
	}
	taken := e.Memory[takenOffset:]
	if err := e.await(ctx, m, taken, want); err != nil {
		return err
	}
	says := atomics.Word64(taken).Load()
	if says > o.sent {
		return fmt.Errorf("%d slots freed of %d: %w", says, o.sent, ErrCorrupt)
	}
	o.known, o.freed = says, o.ends[says%Slots]
	return nil
}
