package collectives

import (
	"context"
	"encoding/binary"
	"math"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/rpipe"
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
// Where the two ends alone know how long a message is, its header goes ahead by the pipe.
// Who receives has said where before it waits for anything, so that members which
// exchange long messages around a ring do not wait in a circle.
type rendezvous struct {
	offers []byte         // to this member, of all members, by rank; nil without such a device
	word   *atomic.Uint64 // of the offers that this member waits for
	want   uint64         // what it shall be at least
	other  *partner       // whose word it is
	ready  func() bool    // that it is, or that a block of the other's came first
}

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
//	0         8        16       24     32     40       48       56
//	| address | key hi | key lo | call | mark | length | number | landed |
//
// The number counts the long messages from one member to the other; landed counts
// pieces, the other way.
const (
	offerSize   = 64
	offerNumber = 48
	offerLanded = 56
)

// prepare makes what others write to. All members come here ahead of their first
// message, so that whoever has a long one for them finds it.
func (p *pipes) prepare(ctx context.Context, peer *fabric.Peer) error {
	if p.offers != nil || !peer.Lands() {
		return nil
	}
	team := p.group.team
	block, err := team.Arena().Alloc(offerSize * len(team.Members))
	if err != nil {
		return err
	}
	if _, err = team.Register(ctx, p.offersName(), block.Memory); err == nil {
		p.offers = block.Bytes
	}
	return err
}

func (p *pipes) offersName() string { return p.group.team.Name + "/offers" }

// reach makes ready for long messages with a partner.
func (p *pipes) reach(ctx context.Context, member int) (err error) {
	with := &p.partners[member]
	if with.landing != nil {
		return nil
	}
	if with.offers, err = p.group.team.AwaitRegion(ctx, p.group.team.Members[member], p.offersName()); err != nil {
		return err
	}
	with.landing, err = p.group.team.NewLanding(ctx)
	return err
}

// offer tells a member where its long message goes.
func (p *pipes) offer(ctx context.Context, c *course, dst []byte) error {
	with := &p.partners[c.member]
	at := with.landing.Open(dst)
	for i, word := range [...]uint64{at.Addr, at.RKey.Hi, at.RKey.Lo, p.seq, p.mark, uint64(len(dst))} {
		binary.NativeEndian.PutUint64(p.place[8*i:], word)
	}
	lo := p.Rank() * offerSize
	return with.offers.WriteFlag(ctx, lo, p.place[:], fabric.Flag{Offset: lo + offerNumber, Value: c.number})
}

// land starts to write the next piece, which begins at an offset of a long message,
// where its receiver says, once it has.
func (p *pipes) land(ctx context.Context, c *course, offset int, piece []byte) (fabric.Request, error) {
	at, err := p.offered(ctx, c)
	if err != nil {
		return fabric.Request{}, err
	}
	landed := fabric.Flag{Offset: p.Rank()*offerSize + offerLanded, Value: c.piece()}
	return p.partners[c.member].offers.StartLand(ctx, at.Add(uint64(offset)), piece, landed, c.pieces() == 1)
}

// landed waits for the next piece of a long message.
func (p *pipes) landed(ctx context.Context, c *course) error {
	return p.told(ctx, c, p.offers[c.member*offerSize:][:offerSize], offerLanded, c.piece())
}

// told waits for a word of the other member's. Blocks that come by its pipe meanwhile
// tell if it is in another call, in which nobody would ever write the word.
func (p *pipes) told(ctx context.Context, c *course, offer []byte, word int, want uint64) error {
	p.word, p.want, p.other = atomics.Word64(offer[word:]), want, &p.partners[c.member]
	for !p.there() {
		err := p.group.team.Await(ctx, p.ready)
		if err == nil && !p.there() {
			err = p.readEarly(ctx, c, word == offerLanded)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// there tells whether the word is what it shall be.
func (p *pipes) there() bool { return p.word.Load() >= p.want }

// readEarly takes a block that came ahead of a word. One of the same call is kept for
// the message that it belongs to, but for one in place of a piece: the member that
// sent it takes the message to be short.
func (p *pipes) readEarly(ctx context.Context, c *course, short bool) error {
	b, err := p.other.in.Read(ctx)
	if err != nil {
		return err
	}
	p.other.early, p.other.kept = b, true
	says, err := p.check(ctx, c, b.Mem())
	if err == nil && short && !p.there() { // a word that was written before the block is there by now
		err = p.group.unlike(c.member, says, c.bytes)
	}
	return err
}

// next returns the next block of a member's.
func (p *pipes) next(ctx context.Context, with *partner) (rpipe.Block[byte], error) {
	if !with.kept {
		return with.in.Read(ctx)
	}
	b := with.early
	with.early, with.kept = rpipe.Block[byte]{}, false
	return b, nil
}

// offered returns where the receiver of a long message wants it.
func (p *pipes) offered(ctx context.Context, c *course) (at fabric.Address, err error) {
	offer := p.offers[c.member*offerSize:][:offerSize]
	if err := p.told(ctx, c, offer, offerNumber, c.number); err != nil {
		return at, err
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(offer[8*i:]) }
	if word(3) != p.seq || word(4) != p.mark {
		return at, p.group.team.Differs(ctx, min(word(3), p.seq), c.member)
	}
	if says := word(5); says != uint64(c.bytes) {
		return at, p.group.unlike(c.member, int(min(says, math.MaxInt)), c.bytes)
	}
	at.Addr, at.RKey.Hi, at.RKey.Lo = word(0), word(1), word(2)
	return at, nil
}
