package channel

import (
	"context"
	"encoding/binary"

	"github.com/gopgas/gopgas/internal/fabric"
)

// An offer says where a receiver's memory for its next long message is. The word behind it
// says how many pieces of the peer's messages have landed:
//
//	0         8        16       24    32      40       48       56
//	| address | key hi | key lo | seq | chain | length | number | landed |
//
// The number counts the messages that land, in one direction; landed counts the pieces in
// the opposite direction.
const (
	offerNumber = 48
	offerLanded = 56
	offerSize   = 56
)

// Lands reports whether a message of so many bytes lands, if its receiver copies it. Both
// ends come to the same result. For a shorter message, the offer takes more time than a copy.
func (e *End) Lands(bytes int) bool { return e.Config.Lands && bytes >= MostPiece(e.Ring) }

// offer tells the peer where the bytes of a message go.
func (e *End) offer(ctx context.Context, m *Message, dst []byte) error {
	in := &e.in
	err := e.reach(ctx)
	if err == nil && in.place == nil {
		in.place, err = e.NewLanding(ctx)
	}
	if err != nil {
		return err
	}
	at := in.place.Open(dst)
	for i, w := range [...]uint64{at.Addr, at.RKey.Hi, at.RKey.Lo, m.Key.Seq, m.Key.Chain, uint64(len(dst)), m.number} {
		binary.NativeEndian.PutUint64(in.offer[8*i:], w)
	}
	body := fabric.Part{At: offerOffset, Mem: in.offer[:]}
	return e.there.Put(ctx, &fabric.Put{Body: body, Tell: fabric.TellByLastWord})
}

// Shut takes back the memory that this rank offered last.
func (e *End) Shut() {
	if e.in.place != nil {
		e.in.place.Shut()
	}
}

// land waits for the peer's offer and starts to write the piece at an offset of a message
// there.
func (e *End) land(ctx context.Context, m *Message, offset int, piece []byte) error {
	if err := m.under.Wait(ctx); err != nil {
		return err
	}
	at, err := e.offered(ctx, m)
	if err != nil {
		return err
	}
	landed := fabric.Flag{Offset: offerOffset + offerLanded, Value: m.landed()}
	put := e.there.Land(at.Add(uint64(offset)), piece, landed, m.landings() == 1)
	m.under, err = e.there.Start(ctx, &put)
	return err
}

// offered waits for the peer's offer and returns its address.
func (e *End) offered(ctx context.Context, m *Message) (at fabric.Address, err error) {
	offer := e.Memory[offerOffset:]
	if err := e.await(ctx, m, offer[offerNumber:], m.number); err != nil {
		return at, err
	}
	if err := m.same(Key{word(offer, 24), word(offer, 32)}, word(offer, 40)); err != nil {
		return at, err
	}
	at.Addr, at.RKey.Hi, at.RKey.Lo = word(offer, 0), word(offer, 8), word(offer, 16)
	return at, nil
}
