package collectives

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/rpipe"
)

// Beside the pipes, each member has memory with a row for each other one, which that one
// alone writes:
//
//	0       64      128
//	| offer | taken | slot | slot | ...
//
// The offer says where the other takes a long message (rendezvous), the slots hold its
// short messages to this member, and taken is how many of this member's it took (notes).
const (
	rowOffer = 0
	rowTaken = 64
	rowSlots = 128
)

// rows are a member's.
type rows struct {
	mem   []byte // by member
	slots int    // in a row
	card  [noteSize]byte
	watch
}

// rowSize is as large at all members.
func (r *rows) rowSize() int { return rowSlots + r.slots*noteSize }

// row is what a member writes.
func (r *rows) row(member int) []byte { return r.mem[member*r.rowSize():][:r.rowSize()] }

// A watch is a wait for what another member does.
type watch struct {
	word   *atomic.Uint64 // that becomes want or more; nil: a block comes by the pipe
	want   uint64
	member int
	ready  func() bool // that, or something else came first
}

// prepare makes the rows. All members come here ahead of their first message, so that
// whoever has one for them finds them.
func (p *pipes) prepare(ctx context.Context) error {
	if p.mem != nil {
		return nil
	}
	team := p.group.team
	block, err := team.Arena().Alloc(p.rowSize() * len(team.Members))
	if err != nil {
		return err
	}
	if _, err = team.Register(ctx, p.rowsName(), block.Memory); err == nil {
		p.mem = block.Bytes
	}
	return err
}

func (p *pipes) rowsName() string { return p.group.team.Name + "/rows" }

// told waits for a word of another member's. What else comes from there meanwhile tells
// if it is in another call, in which nobody would ever write the word; instead says that
// nothing else can come in this call either.
func (p *pipes) told(ctx context.Context, c *course, word []byte, want uint64, instead bool) error {
	p.watch.word, p.watch.want, p.watch.member = atomics.Word64(word), want, c.member
	return p.await(ctx, c, instead)
}

// await waits for what is watched.
func (p *pipes) await(ctx context.Context, c *course, instead bool) error {
	for !p.there() {
		err := p.group.team.Await(ctx, p.ready)
		if err == nil && !p.there() {
			err = p.hear(ctx, c, instead)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// there tells whether what is watched for has come.
func (p *pipes) there() bool {
	if p.watch.word == nil {
		return p.partners[p.watch.member].in.Arrived()
	}
	return p.watch.word.Load() >= p.watch.want
}

// strays tells whether something else came that was not looked at yet.
func (p *pipes) strays() bool {
	with := &p.partners[p.watch.member]
	return !with.kept && with.in.Arrived() || with.notes.seen <= with.notes.taken && p.noteCame(p.watch.member)
}

// hear looks at what came ahead of what is watched for. What belongs to this call waits
// for its turn, unless nothing but the awaited can come: the member that sent it takes
// the message to be of another length.
func (p *pipes) hear(ctx context.Context, c *course, instead bool) error {
	with := &p.partners[c.member]
	mem := p.nextNote(c.member)
	if !with.kept && with.in.Arrived() {
		b, err := with.in.Read(ctx)
		if err != nil {
			return err
		}
		with.early, with.kept = b, true
		mem = b.Mem()
	} else if p.noteCame(c.member) {
		with.notes.seen = with.notes.taken + 1
	} else {
		return nil
	}
	says, err := p.check(ctx, c, mem)
	if err != nil || !instead || p.there() { // what was written before this is there by now
		return err
	}
	if says == c.bytes {
		return fmt.Errorf("message of %d bytes from rank %d by another way than such: %w", says, c.member, rpipe.ErrCorrupt)
	}
	return p.group.unlike(c.member, says, c.bytes)
}

// next returns the next block of a member's.
func (p *pipes) next(ctx context.Context, c *course) (rpipe.Block[byte], error) {
	with := &p.partners[c.member]
	if with.kept {
		b := with.early
		with.early, with.kept = rpipe.Block[byte]{}, false
		return b, nil
	}
	p.watch.word, p.watch.member = nil, c.member
	if err := p.await(ctx, c, true); err != nil {
		return rpipe.Block[byte]{}, err
	}
	return with.in.Read(ctx)
}
