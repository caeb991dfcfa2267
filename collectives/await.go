package collectives

import (
	"context"
	"errors"
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
	ready func() bool // that, or something else came
}

// told waits for a word of another member's. What else comes from there meanwhile tells
// if it is in another call, in which nobody would ever write the word.
func (p *transport) told(ctx context.Context, t *transfer, word []byte, want uint64) error {
	p.watch.word, p.watch.want = atomics.Word64(word), want
	return p.await(ctx, t)
}

// next returns the next block of a member's.
func (p *transport) next(ctx context.Context, t *transfer) (b rpipe.Block[byte], err error) {
	with := &p.partners[t.member]
	if with.kept {
		b, with.early, with.kept = with.early, b, false
		return b, nil
	}
	p.watch.word = nil
	for err == nil {
		if err = p.await(ctx, t); err != nil {
			return b, err
		}
		stray := p.usurper(t)
		if b, err = with.in.TryRead(); !errors.Is(err, rpipe.ErrWouldBlock) {
			return b, err
		}
		// The other waits for room, it seems.
		if err = p.well(ctx); err == nil && stray != nil {
			err = p.disagree(ctx, t, stray)
		}
	}
	return b, err
}

// await waits for what is watched.
func (p *transport) await(ctx context.Context, t *transfer) error {
	p.watch.other = &p.partners[t.member]
	for !p.there() {
		if mem := p.usurper(t); mem != nil && !p.there() { // what came before it is there by now
			return p.disagree(ctx, t, mem)
		}
		p.waited = true
		err := p.group.team.Await(ctx, p.watch.ready)
		if err == nil && !p.there() {
			err = p.look(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// well tells what ends a wait that goes on.
func (p *transport) well(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return p.group.team.Err()
}

// there tells whether what is watched for has come.
func (p *transport) there() bool {
	if p.watch.word == nil {
		return p.watch.other.in.Arrived()
	}
	return p.watch.word.Load() >= p.watch.want
}

// strays tells whether something else came that was not looked at yet.
func (p *transport) strays() bool {
	with := p.watch.other
	return !with.kept && with.in.Arrived() || with.eager.stray()
}

// look takes note of what came ahead of what is watched for. What is of this call waits
// for its turn.
func (p *transport) look(ctx context.Context) error {
	with := p.watch.other
	with.eager.look()
	if with.kept || !with.in.Arrived() {
		return nil
	}
	b, err := with.in.TryRead()
	if errors.Is(err, rpipe.ErrWouldBlock) { // the other waits for room, it seems
		return p.well(ctx)
	}
	if err == nil {
		with.early, with.kept = b, true
	}
	return err
}

// usurper returns what came from a member that tells that nobody sends what is waited
// for: it is of another call, or has the turn of the awaited message and came in another
// way than that would.
func (p *transport) usurper(t *transfer) []byte {
	with := &p.partners[t.member]
	if with.kept && p.usurps(t, with.early.Mem()) {
		return with.early.Mem()
	}
	if mem := with.eager.nextSlot(); with.eager.came() && p.usurps(t, mem) {
		return mem
	}
	return nil
}

// usurps: what leaves waits for room and offers, ahead of which anything may come that
// is of this call.
func (p *transport) usurps(t *transfer, mem []byte) bool {
	return !p.ofCall(mem) || !t.out && turnOf(mem) == t.turn
}

// disagree says in what the two ends of a message differ.
func (p *transport) disagree(ctx context.Context, t *transfer, mem []byte) error {
	says, err := p.check(ctx, t, mem)
	switch {
	case err != nil:
		return err
	case says == t.bytes:
		return fmt.Errorf("message of %d bytes from rank %d, not in the way of such: %w", says, t.member, rpipe.ErrCorrupt)
	}
	return p.group.unlike(t.member, says, t.bytes)
}

// inTurn compares what came with the message whose turn it is. That one came, too, if
// this is a later one, since all ways keep their order together.
func (p *transport) inTurn(ctx context.Context, t *transfer, mem []byte) error {
	if turnOf(mem) == t.turn {
		return nil
	}
	p.watch.other = &p.partners[t.member]
	if err := p.look(ctx); err != nil {
		return err
	}
	if mem := p.usurper(t); mem != nil {
		return p.disagree(ctx, t, mem)
	}
	return fmt.Errorf("message %d from rank %d in place of %d: %w", turnOf(mem), t.member, t.turn, rpipe.ErrCorrupt)
}
