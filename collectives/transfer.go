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

// nobody is the member that nothing goes to, or comes from.
const nobody = message.NoMember

// A source is where a message comes from.
type source struct {
	src    []byte
	folded bool // its receiver combines it
}

// A sink is where a message goes.
type sink struct {
	dst     []byte
	folded  bool            // it is combined, now or later
	folding message.Folding // how, if now
}

func (s *sink) take(at int, came []byte) {
	if s.folding.Combine != nil {
		s.folding.Take(at, came)
		return
	}
	copy(s.dst[at:], came)
}

// A course is the way of a message to a member, or from one.
type course struct {
	member int
	out    bool   // to it, or else from it
	turn   uint64 // among all messages that way
	bytes  int
	blocks int            // and pieces
	done   int            // that were sent, or taken
	short  bool           // sent eagerly
	long   bool           // by rendezvous: in pieces that land
	ahead  int            // how many blocks without bytes go ahead of them
	number uint64         // among the long ones between the two
	before uint64         // pieces of earlier ones
	under  fabric.Request // what is under way of a long one that leaves
}

// transfer sends and receives, block by block in turns.
func (p *transport) transfer(ctx context.Context, to, from int, what source, into sink) (err error) {
	p.one = [2]course{}
	out, in := &p.one[0], &p.one[1]
	defer p.shut(in)
	if err := p.leaving(ctx, out, to, len(what.src), what.folded); err != nil {
		return err
	}
	if err := p.coming(ctx, in, from, &into); err != nil {
		return err
	}
	for out.done < out.blocks || in.done < in.blocks {
		for out.done < out.blocks && p.mayPut(out, in) {
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

// mayPut tells whether it is time to send a block or piece, rather than to take one.
// Where two ends may differ in the length of a message, what comes tells that before this
// member waits for an offer, which the other may never make.
func (p *transport) mayPut(out, in *course) bool {
	switch {
	case in.done == in.blocks:
		return true
	case p.telling && in.done == 0 && out.lands():
		return false
	}
	return out.done < in.done+lead
}

// giveUp takes back the memory that a message leaves from, and returns why.
func (p *transport) giveUp(out *course, err error) error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = out.under.Wait(ended) // err is the reason
	return err
}

// leaving begins the course of a message to a member.
func (p *transport) leaving(ctx context.Context, c *course, to, bytes int, folded bool) error {
	c.out = true
	err := p.course(ctx, c, to, bytes, folded)
	if err != nil || c.blocks == 0 {
		return err
	}
	with := &p.partners[to]
	with.outgoing++
	c.turn = with.outgoing
	if c.long {
		with.given++
		c.number, c.before = with.given, with.sent
		with.sent += c.pieces()
	}
	return nil
}

// coming begins the course of a message from a member.
func (p *transport) coming(ctx context.Context, c *course, from int, into *sink) error {
	err := p.course(ctx, c, from, len(into.dst), into.folded)
	if err != nil || c.blocks == 0 {
		return err
	}
	with := &p.partners[from]
	with.incoming++
	c.turn = with.incoming
	if !c.long {
		return nil
	}
	with.taken++
	c.number, c.before = with.taken, with.landed
	with.landed += c.pieces()
	return p.offer(ctx, c, into.dst)
}

// shut takes back the memory that a message comes to.
func (p *transport) shut(in *course) {
	if landing := p.partners[in.member].landing; in.long && landing != nil {
		landing.Shut()
	}
}

// course fills in the way of a message of so many bytes.
func (p *transport) course(ctx context.Context, c *course, member, bytes int, folded bool) error {
	if p.nothing(member, bytes) {
		return nil
	}
	if err := p.open(ctx, member); err != nil {
		return err
	}
	c.member, c.bytes, c.blocks = member, bytes, p.cut(bytes)
	c.short = bytes <= p.eagerMost()
	if folded || !p.partners[member].lands || c.blocks < longFrom {
		return nil
	}
	c.long, c.ahead = true, p.ahead()
	c.blocks = c.ahead + (bytes+longest-1)/longest
	return nil
}

// nothing tells that a message is none.
func (p *transport) nothing(member, bytes int) bool {
	return member == nobody || bytes == 0 && !p.telling
}

// ahead returns how many headers go ahead of a long message. Where the two ends alone
// know how long it is, they find by one if they do not agree.
func (p *transport) ahead() int {
	if p.telling {
		return 1
	}
	return 0
}

// cut returns of how many blocks a message of so many bytes is.
func (p *transport) cut(bytes int) int { return max(1, (bytes+p.step-1)/p.step) }

// span returns which bytes the next block or piece of a message is.
func (p *transport) span(c *course) (lo, hi int) {
	switch {
	case c.lands():
		lo = (c.done - c.ahead) * longest
		return lo, min(lo+longest, c.bytes)
	case c.long:
		return 0, 0
	}
	return c.done * p.step, min((c.done+1)*p.step, c.bytes)
}

// lands tells whether a piece is next.
func (c *course) lands() bool { return c.long && c.done >= c.ahead }

// pieces returns how many there are.
func (c *course) pieces() uint64 { return uint64(c.blocks - c.ahead) }

// piece returns the number of the next one among all between the two.
func (c *course) piece() uint64 { return c.before + uint64(c.done-c.ahead) + 1 }

// put sends the next block or piece of src.
func (p *transport) put(ctx context.Context, c *course, src []byte) (err error) {
	lo, hi := p.span(c)
	if c.short {
		err = p.sendEager(ctx, c, src)
	} else if !c.lands() {
		p.header(p.head[:], c)
		err = p.partners[c.member].out.SendParts(ctx, p.head[:], src[lo:hi])
	} else if err = c.under.Wait(ctx); err == nil {
		c.under, err = p.land(ctx, c, lo, src[lo:hi])
	}
	c.done++
	return err
}

// header writes the header of a message, or of a block of it.
func (p *transport) header(mem []byte, c *course) {
	binary.LittleEndian.PutUint64(mem[0:], p.key.Seq)
	binary.LittleEndian.PutUint64(mem[8:], p.key.Chain)
	binary.LittleEndian.PutUint64(mem[16:], uint64(c.bytes))
	binary.LittleEndian.PutUint64(mem[24:], c.turn)
}

// ofCall tells whether a header is of this call.
func (p *transport) ofCall(mem []byte) bool {
	return len(mem) >= headerSize && binary.LittleEndian.Uint64(mem[0:]) == p.key.Seq && binary.LittleEndian.Uint64(mem[8:]) == p.key.Chain
}

// turnOf returns the turn in a header.
func turnOf(mem []byte) uint64 { return binary.LittleEndian.Uint64(mem[24:]) }

// get takes the next block or piece.
func (p *transport) get(ctx context.Context, c *course, into *sink) error {
	if c.short {
		c.done++
		return p.takeEager(ctx, c, into)
	}
	if c.lands() {
		err := p.landed(ctx, c)
		c.done++
		return err
	}
	with := &p.partners[c.member]
	b, err := p.next(ctx, c)
	if err != nil {
		return err
	}
	if err := p.checkBlock(ctx, c, b.Mem()); err != nil {
		return err
	}
	lo, _ := p.span(c)
	into.take(lo, b.Mem()[headerSize:])
	c.done++
	return with.in.Free(b)
}

// checkBlock compares a block with what is expected.
func (p *transport) checkBlock(ctx context.Context, c *course, mem []byte) error {
	if err := p.expect(ctx, c, mem); err != nil {
		return err
	}
	if lo, hi := p.span(c); len(mem)-headerSize != hi-lo {
		return fmt.Errorf("block of %d bytes from rank %d: %w", len(mem), c.member, rpipe.ErrCorrupt)
	}
	return nil
}

// expect compares what came in the way of a message with the message.
func (p *transport) expect(ctx context.Context, c *course, mem []byte) error {
	says, err := p.check(ctx, c, mem)
	if err == nil {
		err = p.inTurn(ctx, c, mem)
	}
	if err == nil && says != c.bytes {
		err = p.group.unlike(c.member, says, c.bytes)
	}
	return err
}

// check finds whether a block or a short message is of this call, and returns of how
// many bytes the whole message is.
func (p *transport) check(ctx context.Context, c *course, mem []byte) (bytes int, err error) {
	if len(mem) < headerSize {
		return 0, fmt.Errorf("block of %d bytes from rank %d: %w", len(mem), c.member, rpipe.ErrCorrupt)
	}
	if !p.ofCall(mem) {
		seq := binary.LittleEndian.Uint64(mem)
		return 0, p.group.team.Differs(ctx, min(seq, p.key.Seq), c.member) // what is left of a call before differed there
	}
	return int(min(binary.LittleEndian.Uint64(mem[16:]), math.MaxInt)), nil
}
