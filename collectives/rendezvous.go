package collectives

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/gopgas/gopgas/internal/fabric"
)

// Long messages that are copied where they arrive go by rendezvous, if there is a
// device with landings: the receiver says where its memory is, and the sender writes
// there, piece by piece. Pieces are never copied out of a pipe.
//
//	receiver                          sender
//	where dst is   ---------------->  the receiver's offer
//	               <================  a piece, into dst, and how many have landed
//	               <================  the next one, and so on
//
// Who receives has said where before it waits for anything, so that members which
// exchange long messages around a ring do not wait in a circle. Where the two ends alone
// know how long a message is, its header goes ahead by the pipe, and who also receives
// takes the front of that first: all send theirs, whatever lengths they expect.
const (
	// longFrom is of how many blocks a message is for which a rendezvous takes less
	// time than a copy.
	longFrom = 2
	// longest is how long the pieces of a long message are, but the last. Longer ones
	// save little, and two that travel towards each other fill the sockets' buffers
	// with what is out of the caches when it is read.
	longest = 1 << 20
)

// An offer says where a member's memory is that takes its next long message, and what
// landed of those that it sent itself:
//
//	0         8        16       24    32      40       48       56
//	| address | key hi | key lo | seq | chain | length | number | landed |
//
// The number counts the long messages from one member to the other; landed counts
// pieces, the other way.
const (
	offerNumber = 48
	offerLanded = 56
)

// offer tells a member where its long message goes.
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

// land starts to write the next piece, which begins at an offset of a long message,
// where its receiver says, once it has.
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
	return p.told(ctx, t, p.partners[t.member].eager.row[rowOffer+offerLanded:], t.piece())
}

// offered returns where the receiver of a long message wants it.
func (p *transport) offered(ctx context.Context, t *transfer) (at fabric.Address, err error) {
	offer := p.partners[t.member].eager.row[rowOffer:]
	if err := p.told(ctx, t, offer[offerNumber:], t.number); err != nil {
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
