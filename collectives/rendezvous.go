package collectives

import (
	"context"
	"encoding/binary"
	"math"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
)

// Long messages that are copied where they arrive go by rendezvous, if there is a
// device with landings: the receiver says where its memory is, and the sender writes
// there. All but the first block, which travels meanwhile, are never copied out of a
// pipe.
//
//	receiver                          sender
//	               <----------------  block 0: header, bytes
//	where dst is   ---------------->  the receiver's berth
//	               <================  more, into dst
//	               <----------------  block 1: header: it is there
//	                      ...
//
// Who receives has said where before it waits for anything, so that members which
// exchange long messages around a ring do not wait in a circle.
type rendezvous struct {
	berths []byte // of all members, by rank; nil without such a device
}

// longFrom is of how many blocks a message is for which a rendezvous takes less time
// than a copy.
const longFrom = 3

// A berth is where a member's memory is that takes its next long message:
//
//	0         8        16       24     32     40       48        56
//	| address | key hi | key lo | call | mark | length | number | 0 |
//
// The number counts the long messages from one member to the other.
const (
	berthSize   = 64
	berthNumber = 48
)

// prepare makes what others write to. All members come here ahead of their first
// message, so that whoever has a long one for them finds it.
func (p *pipes) prepare(ctx context.Context, peer *fabric.Peer) error {
	if p.berths != nil || !peer.Lands() {
		return nil
	}
	team := p.group.team
	block, err := team.Arena().Alloc(berthSize * len(team.Members))
	if err != nil {
		return err
	}
	if _, err = team.Register(ctx, p.berthsName(), block.Memory); err == nil {
		p.berths = block.Bytes
	}
	return err
}

func (p *pipes) berthsName() string { return p.group.team.Name + "/berths" }

// reach makes ready for long messages with a partner.
func (p *pipes) reach(ctx context.Context, member int) (err error) {
	with := &p.partners[member]
	if with.landing != nil {
		return nil
	}
	if with.berths, err = p.group.team.AwaitRegion(ctx, p.group.team.Members[member], p.berthsName()); err != nil {
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
	lo := p.Rank() * berthSize
	return with.berths.WriteFlag(ctx, lo, p.place[:], fabric.Flag{Offset: lo + berthNumber, Value: c.number})
}

// offered tells whether the receiver of a long message has said where it goes.
func (p *pipes) offered(c *course) bool {
	return c.at != (fabric.Address{}) || p.berth(c.member).Load() >= c.number
}

// berth returns the number in a member's berth.
func (p *pipes) berth(member int) *atomic.Uint64 {
	return atomics.Word64(p.berths[member*berthSize+berthNumber:])
}

// land writes what begins at an offset of a long message where the receiver said.
func (p *pipes) land(ctx context.Context, c *course, offset int, block []byte) (err error) {
	if c.at == (fabric.Address{}) {
		if c.at, err = p.said(ctx, c); err != nil {
			return err
		}
	}
	peer := p.partners[c.member].berths.Peer
	for at, most := c.at.Add(uint64(offset)), peer.Landable(); len(block) > 0; {
		piece := block[:min(len(block), most)]
		if err := peer.Land(ctx, at, piece); err != nil {
			return err
		}
		at, block = at.Add(uint64(len(piece))), block[len(piece):]
	}
	return nil
}

// said returns what the receiver of a long message has said.
func (p *pipes) said(ctx context.Context, c *course) (at fabric.Address, err error) {
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(p.berths[c.member*berthSize+8*i:]) }
	if word(3) != p.seq || word(4) != p.mark {
		return at, p.group.team.Differs(ctx, min(word(3), p.seq), c.member)
	}
	if says := word(5); says != uint64(c.bytes) {
		return at, p.group.unlike(c.member, int(min(says, math.MaxInt)), c.bytes)
	}
	at.Addr, at.RKey.Hi, at.RKey.Lo = word(0), word(1), word(2)
	return at, nil
}
