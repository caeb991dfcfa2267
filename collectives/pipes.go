package collectives

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/rpipe"
)

// pipes are the message.Carrier of a team: a pipe each way between this member
// and those that it exchanged messages with. A message is one block or several,
// none of which takes more than a quarter of a pipe's heap:
//
//	0      8      16       24
//	| call | mark | length | bytes ...
//	  number and hash      of the whole message
//
// So a block of another call is told before a byte of it is used. A message of no
// bytes is no block, but for calls in which only its two ends know how long it is:
// there it is a header, or one end would wait for what the other has not got.
type pipes struct {
	group    *group
	partners []partner
	heap     int    // bytes of each pipe's
	seq      uint64 // of the call
	mark     uint64
	step     int  // bytes of a block, in whole elements
	telling  bool // of empty messages
	head     [headerSize]byte
	large    []byte
}

// A partner is another member.
type partner struct {
	out *rpipe.Writer[byte]
	in  *rpipe.Reader[byte]
}

const (
	headerSize = 24
	// mostHeap holds a few blocks on their way while others are made and used. A
	// member that exchanges messages with very many has smaller heaps, which take
	// allHeaps together, but no less than leastHeap each.
	mostHeap, leastHeap = 1 << 20, 64 << 10
	allHeaps            = 64 << 20
	// pipeName is not a name that programs are likely to give their pipes.
	pipeName = "(collectives)"
	// lead is how many blocks an exchange sends ahead of what it received. With a
	// heap of four, a member waits for room only at one that is further behind,
	// so they never wait in a circle.
	lead = 2
)

// heapFor returns the size of a pipe's heap in a team of n, the same at both ends.
func heapFor(n int) int { return min(max(allHeaps/n&^(leastHeap-1), leastHeap), mostHeap) }

// block returns the longest block without its header.
func (p *pipes) block() int { return p.heap/4 - headerSize }

// begin prepares for a call on elements of a size.
func (p *pipes) begin(seq, mark uint64, elem int, telling bool) {
	p.seq, p.mark, p.step, p.telling = seq, mark, p.block(), telling
	if elem <= p.step {
		p.step -= p.step % elem
	}
}

func (p *pipes) Rank() int { return p.group.team.Rank }

func (p *pipes) Size() int { return len(p.group.team.Members) }

// A sink is where a message goes.
type sink struct {
	dst  []byte
	left bool            // what comes is the left operand
	f    message.Combine // nil: copy
}

func (s *sink) take(at int, came []byte) {
	into := s.dst[at : at+len(came)]
	switch {
	case s.f == nil:
		copy(into, came)
	case s.left:
		s.f(into, came, into)
	default:
		s.f(into, into, came)
	}
}

func (p *pipes) Send(ctx context.Context, to int, src []byte) error {
	return p.transfer(ctx, to, src, nobody, sink{})
}

func (p *pipes) Recv(ctx context.Context, from int, dst []byte) error {
	return p.transfer(ctx, nobody, nil, from, sink{dst: dst})
}

func (p *pipes) Exchange(ctx context.Context, to int, src []byte, from int, dst []byte) error {
	return p.transfer(ctx, to, src, from, sink{dst: dst})
}

func (p *pipes) Fold(ctx context.Context, from int, acc []byte, left bool, f message.Combine, elem int) error {
	return p.ExchangeFold(ctx, nobody, nil, from, acc, left, f, elem)
}

func (p *pipes) ExchangeFold(ctx context.Context, to int, src []byte, from int, acc []byte, left bool, f message.Combine, elem int) error {
	into := sink{acc, left, f}
	if elem <= p.block() {
		return p.transfer(ctx, to, src, from, into)
	}
	// Blocks end within elements, which come together here.
	if len(p.large) < len(acc) {
		p.large = make([]byte, len(acc))
	}
	came := p.large[:len(acc)]
	if err := p.transfer(ctx, to, src, from, sink{dst: came}); err != nil {
		return err
	}
	into.take(0, came)
	return nil
}

// nobody is the member that nothing goes to, or comes from.
const nobody = -1

// transfer sends and receives, block by block in turns.
func (p *pipes) transfer(ctx context.Context, to int, src []byte, from int, into sink) error {
	out, in := p.blocks(to, len(src)), p.blocks(from, len(into.dst))
	if err := p.open(ctx, to, out); err != nil {
		return err
	}
	if err := p.open(ctx, from, in); err != nil {
		return err
	}
	sent, got := 0, 0
	for sent < out || got < in {
		for sent < out && (got >= in || sent < got+lead) {
			if err := p.put(ctx, to, src, sent*p.step); err != nil {
				return err
			}
			sent++
		}
		if got < in {
			if err := p.get(ctx, from, &into, got*p.step); err != nil {
				return err
			}
			got++
		}
	}
	return nil
}

// blocks returns how many blocks a message of so many bytes is.
func (p *pipes) blocks(member, bytes int) int {
	switch {
	case member == nobody || bytes == 0 && !p.telling:
		return 0
	case bytes == 0:
		return 1
	}
	return (bytes + p.step - 1) / p.step
}

// open opens the pipes with a member, unless there is nothing to be moved.
func (p *pipes) open(ctx context.Context, member, blocks int) error {
	if blocks == 0 || p.partners[member].in != nil {
		return nil
	}
	in, err := rpipe.OpenReader[byte](ctx, p.group.handle, member, rpipe.WithName(pipeName), rpipe.WithHeap(p.heap))
	if err != nil {
		return err
	}
	out, err := rpipe.OpenWriter[byte](ctx, p.group.handle, member, rpipe.WithName(pipeName), rpipe.WithHeap(p.heap))
	if err != nil {
		return err // and the team is broken, which has no other use for the reader
	}
	p.partners[member] = partner{out, in}
	return nil
}

// put sends the block of src that begins at an offset.
func (p *pipes) put(ctx context.Context, to int, src []byte, at int) error {
	p.header(p.head[:], len(src))
	return p.partners[to].out.SendParts(ctx, p.head[:], src[at:min(at+p.step, len(src))])
}

// header writes a block's header.
func (p *pipes) header(mem []byte, length int) {
	binary.LittleEndian.PutUint64(mem[0:], p.seq)
	binary.LittleEndian.PutUint64(mem[8:], p.mark)
	binary.LittleEndian.PutUint64(mem[16:], uint64(length))
}

// get takes the block that goes to an offset.
func (p *pipes) get(ctx context.Context, from int, into *sink, at int) error {
	in := p.partners[from].in
	b, err := in.Read(ctx)
	if err != nil {
		return err
	}
	if err := p.check(ctx, from, b.Mem(), len(into.dst), at); err != nil {
		return err
	}
	into.take(at, b.Mem()[headerSize:])
	return in.Free(b)
}

// check compares a block's header with what is expected.
func (p *pipes) check(ctx context.Context, from int, mem []byte, length, at int) error {
	if len(mem) < headerSize {
		return fmt.Errorf("block of %d bytes from rank %d: %w", len(mem), from, rpipe.ErrCorrupt)
	}
	seq := binary.LittleEndian.Uint64(mem[0:])
	if seq != p.seq || binary.LittleEndian.Uint64(mem[8:]) != p.mark {
		return p.group.team.Differs(ctx, min(seq, p.seq), from) // what is left of a call before differed there
	}
	if says := binary.LittleEndian.Uint64(mem[16:]); says != uint64(length) {
		return p.group.unlike(from, int(min(says, math.MaxInt)), length)
	}
	if len(mem)-headerSize != min(p.step, length-at) {
		return fmt.Errorf("block of %d bytes from rank %d: %w", len(mem), from, rpipe.ErrCorrupt)
	}
	return nil
}
