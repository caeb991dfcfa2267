package collectives

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/gopgas/gopgas/internal/fabric"
)

// A long message that its receiver copies goes by rendezvous, if a device has landings.
// The receiver says where its memory is, and the sender writes there, piece by piece. The
// receiver copies no piece out of a pipe.
//
//	receiver                          sender
//	where dst is   ---------------->  the receiver's offer
//	               <================  a piece, into dst, and how many have landed
//	               <================  the next one, and so on
//
// A receiver makes its offer before it waits. So members that exchange long messages around
// a ring do not wait in a circle. Where the two ends alone know the length of a message,
// its header goes ahead by the pipe. A member that also receives then takes the front of
// that message before it writes a piece. All members send their headers first, whatever
// lengths they expect.
const (
	// longFrom is the number of blocks from which a rendezvous takes less time than a
	// copy.
	longFrom = 2
	// longest is the length of all pieces of a long message but the last. Longer ones
	// save little: two that go in opposite directions fill the sockets' buffers, and
	// their bytes have left the caches when the receiver reads them.
	longest = 1 << 20
)

// An offer says where a member's memory for its next long message is. The word behind it
// says how many pieces of its own messages have landed:
//
//	0         8        16       24    32      40       48       56
//	| address | key hi | key lo | seq | chain | length | number | landed |
//
// The number counts the long messages in one direction; landed counts the pieces in the
// opposite direction.
const (
	offerNumber = 48
	offerLanded = 56
)

// offer tells the sender of a long message where the bytes go.
func (p *transport) offer(ctx context.Context, t *transfer, dst []byte) error {
	with := &p.partners[t.member]
	err := p.reach(ctx, t.member)
	if err == nil && with.landing == nil {
		with.landing, err = p.group.team.NewLanding(ctx)
	}
	if err != nil {
		return err
	}
	at := with.landing.Open(dst)
	for i, word := range [...]uint64{at.Addr, at.RKey.Hi, at.RKey.Lo, p.key.Seq, p.key.Chain, uint64(len(dst)), t.number} {
		binary.NativeEndian.PutUint64(p.place[8*i:], word)
	}
	return with.there.Put(ctx, &fabric.Put{Body: fabric.Part{At: rowOffer, Mem: p.place[:]}, Tell: fabric.TellByLastWord})
}

// land waits for the receiver's offer and starts to write the next piece there. The piece
// begins at an offset of the long message.
func (p *transport) land(ctx context.Context, t *transfer, offset int, piece []byte) (fabric.Request, error) {
	at, err := p.offered(ctx, t)
	if err == nil {
		err = p.reach(ctx, t.member)
	}
	if err != nil {
		return fabric.Request{}, err
	}
	landed := fabric.Flag{Offset: rowOffer + offerLanded, Value: t.piece()}
	there := p.partners[t.member].there
	put := there.Land(at.Add(uint64(offset)), piece, landed, t.pieces() == 1)
	return there.Start(ctx, &put)
}

// landed waits for the next piece of a long message.
func (p *transport) landed(ctx context.Context, t *transfer) error {
	return p.awaitWord(ctx, t, p.partners[t.member].eager.row[rowOffer+offerLanded:], t.piece())
}

// offered waits for the receiver's offer and returns its address.
func (p *transport) offered(ctx context.Context, t *transfer) (at fabric.Address, err error) {
	offer := p.partners[t.member].eager.row[rowOffer:]
	if err := p.awaitWord(ctx, t, offer[offerNumber:], t.number); err != nil {
		return at, err
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(offer[8*i:]) }
	if word(3) != p.key.Seq || word(4) != p.key.Chain {
		return at, p.group.team.Differs(ctx, min(word(3), p.key.Seq), t.member)
	}
	if says := word(5); says != uint64(t.bytes) {
		return at, p.group.unlike(t.member, int(min(says, math.MaxInt)), t.bytes)
	}
	at.Addr, at.RKey.Hi, at.RKey.Lo = word(0), word(1), word(2)
	return at, nil
}
