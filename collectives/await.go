package collectives

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/rpipe"
)

// A watch is a wait for what another member does.
type watch struct {
	word  *atomic.Uint64 // that becomes want or more; nil: a block comes by the pipe
	want  uint64
	other *partner
	ready func() bool // that, or something else came first
}

// told waits for a word of another member's. What else comes from there meanwhile tells
// if it is in another call, in which nobody would ever write the word; instead says that
// nothing else can come in this call either.
func (p *carrier) told(ctx context.Context, c *course, word []byte, want uint64, instead bool) error {
	p.watch.word, p.watch.want = atomics.Word64(word), want
	return p.await(ctx, c, instead)
}

// next returns the next block of a member's.
func (p *carrier) next(ctx context.Context, c *course) (b rpipe.Block[byte], err error) {
	with := &p.partners[c.member]
	if with.kept {
		b, with.early, with.kept = with.early, b, false
		return b, nil
	}
	p.watch.word = nil
	if err := p.await(ctx, c, true); err != nil {
		return b, err
	}
	return with.in.Read(ctx)
}

// await waits for what is watched.
func (p *carrier) await(ctx context.Context, c *course, instead bool) error {
	p.watch.other = &p.partners[c.member]
	for !p.there() {
		err := p.group.team.Await(ctx, p.watch.ready)
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
func (p *carrier) there() bool {
	if p.watch.word == nil {
		return p.watch.other.in.Arrived()
	}
	return p.watch.word.Load() >= p.watch.want
}

// strays tells whether something else came that was not looked at yet.
func (p *carrier) strays() bool {
	with := p.watch.other
	return !with.kept && with.in.Arrived() || with.eager.stray()
}

// hear looks at what came ahead of what is watched for. What belongs to this call waits
// for its turn, unless nothing but the awaited can come: the member that sent it takes
// the message to be of another length.
func (p *carrier) hear(ctx context.Context, c *course, instead bool) error {
	with := p.watch.other
	mem := with.eager.nextSlot()
	switch {
	case !with.kept && with.in.Arrived():
		b, err := with.in.Read(ctx)
		if err != nil {
			return err
		}
		with.early, with.kept = b, true
		mem = b.Mem()
	case with.eager.came():
		with.eager.seen = with.eager.taken + 1
	default:
		return nil
	}
	says, err := p.check(ctx, c, mem)
	if err != nil || !instead || p.there() { // what was written before this is there by now
		return err
	}
	if says == c.bytes {
		return fmt.Errorf("message of %d bytes from rank %d, not in the way of such: %w", says, c.member, rpipe.ErrCorrupt)
	}
	return p.group.unlike(c.member, says, c.bytes)
}
