package collectives

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/rpipe"
)

// noMember stands for the destination or origin of a message that is not sent.
const noMember = message.NoMember

// A source holds the bytes that a transfer sends.
type source struct {
	src    []byte
	folded bool // the receiver combines them
}

// A sink takes the bytes that a transfer receives.
type sink struct {
	dst     []byte
	folded  bool            // the receiver combines them, at once or later
	folding message.Folding // how, if at once
}

func (s *sink) take(at int, came []byte) {
	if s.folding.Combine != nil {
		s.folding.Take(at, came)
		return
	}
	copy(s.dst[at:], came)
}

// A transfer is one message to a member or from one, in progress.
type transfer struct {
	member int
	out    bool   // to the member; false: from it
	turn   uint64 // number among all messages in this direction
	bytes  int
	blocks int            // blocks and pieces together
	done   int            // blocks and pieces that were sent or taken
	short  bool           // goes eagerly
	long   bool           // goes by rendezvous, in pieces that land
	ahead  int            // blocks without bytes ahead of the pieces
	number uint64         // among the long messages in this direction
	before uint64         // pieces of earlier long messages
	under  fabric.Request // the write of a long message's piece that is in progress
}

// sendRecv sends one message and receives another, block by block in turns.
func (p *transport) sendRecv(ctx context.Context, to, from int, what source, into sink) (err error) {
	p.one = [2]transfer{}
	out, in := &p.one[0], &p.one[1]
	defer p.shut(in)
	if err := p.beginSend(ctx, out, to, len(what.src), what.folded); err != nil {
		return err
	}
	if err := p.beginRecv(ctx, in, from, &into); err != nil {
		return err
	}
	for out.done < out.blocks || in.done < in.blocks {
		for out.done < out.blocks && p.maySend(out, in) {
			if err := p.put(ctx, out, what.src); err != nil {
				return p.giveUp(out, err)
			}
		}
		if in.done < in.blocks {
			if err := p.get(ctx, in, &into); err != nil {
				return p.giveUp(out, err)
			}
		}
	}
	return out.under.Wait(ctx)
}

// maySend reports whether the next step sends a block or piece; else it takes one. Where
// two ends may differ in the length of a message, this member first takes the front of the
// incoming one. It finds a difference there, before it waits for an offer that may never
// come.
func (p *transport) maySend(out, in *transfer) bool {
	switch {
	case in.done == in.blocks:
		return true
	case p.telling && in.done == 0 && out.lands():
		return false
	}
	return out.done < in.done+lead
}

// giveUp takes back the memory from which a message is sent, and returns err.
func (p *transport) giveUp(out *transfer, err error) error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = out.under.Wait(ended) // err is the reason
	return err
}

// beginSend begins the transfer of a message to a member.
func (p *transport) beginSend(ctx context.Context, t *transfer, to, bytes int, folded bool) error {
	t.out = true
	err := p.prepare(ctx, t, to, bytes, folded)
	if err != nil || t.blocks == 0 {
		return err
	}
	with := &p.partners[to]
	with.outgoing++
	t.turn = with.outgoing
	if t.long {
		with.given++
		t.number, t.before = with.given, with.sent
		with.sent += t.pieces()
	}
	return nil
}

// beginRecv begins the transfer of a message from a member.
func (p *transport) beginRecv(ctx context.Context, t *transfer, from int, into *sink) error {
	err := p.prepare(ctx, t, from, len(into.dst), into.folded)
	if err != nil || t.blocks == 0 {
		return err
	}
	with := &p.partners[from]
	with.incoming++
	t.turn = with.incoming
	if !t.long {
		return nil
	}
	with.taken++
	t.number, t.before = with.taken, with.landed
	with.landed += t.pieces()
	return p.offer(ctx, t, into.dst)
}

// shut takes back the memory in which a message lands.
func (p *transport) shut(in *transfer) {
	if landing := p.partners[in.member].landing; in.long && landing != nil {
		landing.Shut()
	}
}

// prepare chooses the way of a message from its length and use.
func (p *transport) prepare(ctx context.Context, t *transfer, member, bytes int, folded bool) error {
	if p.nothing(member, bytes) {
		return nil
	}
	if err := p.open(ctx, member); err != nil {
		return err
	}
	t.member, t.bytes, t.blocks = member, bytes, p.cut(bytes)
	t.short = bytes <= p.eagerMost()
	if folded || !p.partners[member].lands || t.blocks < longFrom {
		return nil
	}
	t.long, t.ahead = true, p.ahead()
	t.blocks = t.ahead + (bytes+longest-1)/longest
	return nil
}

// nothing reports whether the sender sends nothing for a message.
func (p *transport) nothing(member, bytes int) bool {
	return member == noMember || bytes == 0 && !p.telling
}

// ahead returns how many headers go ahead of a long message. Where the two ends alone
// know the length, they compare it by one header.
func (p *transport) ahead() int {
	if p.telling {
		return 1
	}
	return 0
}

// cut returns the number of blocks of a message of so many bytes.
func (p *transport) cut(bytes int) int { return max(1, (bytes+p.step-1)/p.step) }

// span returns the bounds of the bytes in the next block or piece of a message.
func (p *transport) span(t *transfer) (lo, hi int) {
	switch {
	case t.lands():
		lo = (t.done - t.ahead) * longest
		return lo, min(lo+longest, t.bytes)
	case t.long:
		return 0, 0
	}
	return t.done * p.step, min((t.done+1)*p.step, t.bytes)
}

// lands reports whether a piece is next.
func (t *transfer) lands() bool { return t.long && t.done >= t.ahead }

// pieces returns the number of pieces.
func (t *transfer) pieces() uint64 { return uint64(t.blocks - t.ahead) }

// piece returns the number of the next piece among all in this direction.
func (t *transfer) piece() uint64 { return t.before + uint64(t.done-t.ahead) + 1 }

// put sends the next block or piece of src.
func (p *transport) put(ctx context.Context, t *transfer, src []byte) (err error) {
	lo, hi := p.span(t)
	if t.short {
		err = p.sendEager(ctx, t, src)
	} else if !t.lands() {
		p.header(p.head[:], t)
		err = p.partners[t.member].out.SendParts(ctx, p.head[:], src[lo:hi])
	} else if err = t.under.Wait(ctx); err == nil {
		t.under, err = p.land(ctx, t, lo, src[lo:hi])
	}
	t.done++
	return err
}

// header writes the header of a message, or of a block of it.
func (p *transport) header(mem []byte, t *transfer) {
	binary.LittleEndian.PutUint64(mem[0:], p.key.Seq)
	binary.LittleEndian.PutUint64(mem[8:], p.key.Chain)
	binary.LittleEndian.PutUint64(mem[16:], uint64(t.bytes))
	binary.LittleEndian.PutUint64(mem[24:], t.turn)
}

// ofCall reports whether a header belongs to this call.
func (p *transport) ofCall(mem []byte) bool {
	return len(mem) >= headerSize && binary.LittleEndian.Uint64(mem[0:]) == p.key.Seq && binary.LittleEndian.Uint64(mem[8:]) == p.key.Chain
}

// turnOf returns the turn in a header.
func turnOf(mem []byte) uint64 { return binary.LittleEndian.Uint64(mem[24:]) }

// get takes the next block or piece.
func (p *transport) get(ctx context.Context, t *transfer, into *sink) error {
	if t.short {
		t.done++
		return p.takeEager(ctx, t, into)
	}
	if t.lands() {
		err := p.landed(ctx, t)
		t.done++
		return err
	}
	with := &p.partners[t.member]
	b, err := p.next(ctx, t)
	if err != nil {
		return err
	}
	if err := p.checkBlock(ctx, t, b.Mem()); err != nil {
		return err
	}
	lo, _ := p.span(t)
	into.take(lo, b.Mem()[headerSize:])
	t.done++
	return with.in.Free(b)
}

// checkBlock compares a block with what is expected.
func (p *transport) checkBlock(ctx context.Context, t *transfer, mem []byte) error {
	if err := p.expect(ctx, t, mem); err != nil {
		return err
	}
	if lo, hi := p.span(t); len(mem)-headerSize != hi-lo {
		return fmt.Errorf("block of %d bytes from rank %d: %w", len(mem), t.member, rpipe.ErrCorrupt)
	}
	return nil
}

// expect compares the header of a message that came with the message that t expects.
func (p *transport) expect(ctx context.Context, t *transfer, mem []byte) error {
	says, err := p.check(ctx, t, mem)
	if err == nil {
		err = p.inTurn(ctx, t, mem)
	}
	if err == nil && says != t.bytes {
		err = p.group.unlike(t.member, says, t.bytes)
	}
	return err
}

// check returns the length of the whole message in the header of a block or short
// message. It returns an error if that belongs to another call.
func (p *transport) check(ctx context.Context, t *transfer, mem []byte) (bytes int, err error) {
	if len(mem) < headerSize {
		return 0, fmt.Errorf("block of %d bytes from rank %d: %w", len(mem), t.member, rpipe.ErrCorrupt)
	}
	if !p.ofCall(mem) {
		seq := binary.LittleEndian.Uint64(mem)
		return 0, p.group.team.Differs(ctx, min(seq, p.key.Seq), t.member) // the message may be left from an earlier call, which differed then
	}
	return int(min(binary.LittleEndian.Uint64(mem[16:]), math.MaxInt)), nil
}
