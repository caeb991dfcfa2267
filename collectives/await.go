package collectives

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/rpipe"
)

// A watch describes one wait for a word or a block of a partner.
type watch struct {
	word  *atomic.Uint64 // becomes want or more; nil: a block comes by the pipe
	want  uint64
	other *partner
	ready func() bool // arrived or unexpected
}

// awaitWord waits until a word that the member writes is want or more. A mismatched
// message ends the wait: a member in another call never writes the word.
func (p *transport) awaitWord(ctx context.Context, t *transfer, word []byte, want uint64) error {
	p.watch.word, p.watch.want = atomics.Word64(word), want
	return p.await(ctx, t)
}

// next returns the next block from a member.
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
		wrong := p.mismatched(t)
		if b, err = with.in.TryRead(); !errors.Is(err, rpipe.ErrWouldBlock) {
			return b, err
		}
		// The partner seems to wait for room.
		if err = p.ended(ctx); err == nil && wrong != nil {
			err = p.disagree(ctx, t, wrong)
		}
	}
	return b, err
}

// await waits until the word or block of the watch has arrived.
func (p *transport) await(ctx context.Context, t *transfer) error {
	p.watch.other = &p.partners[t.member]
	for !p.arrived() {
		if mem := p.mismatched(t); mem != nil && !p.arrived() { // messages sent before mem have arrived by now
			return p.disagree(ctx, t, mem)
		}
		p.waited = true
		err := p.group.team.Await(ctx, p.watch.ready)
		if err == nil && !p.arrived() {
			err = p.look(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ended returns the reason to end a wait: ctx or the team has ended.
func (p *transport) ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return p.group.team.Err()
}

// arrived reports whether the word or block of the watch has arrived.
func (p *transport) arrived() bool {
	if p.watch.word == nil {
		return p.watch.other.in.Arrived()
	}
	return p.watch.word.Load() >= p.watch.want
}

// unexpected reports whether the partner sent a message that look has not seen yet.
func (p *transport) unexpected() bool {
	with := p.watch.other
	return !with.kept && with.in.Arrived() || with.eager.unexpected()
}

// look takes note of a message that came ahead of the watched one. A message of this call
// waits for its turn.
func (p *transport) look(ctx context.Context) error {
	with := p.watch.other
	with.eager.look()
	if with.kept || !with.in.Arrived() {
		return nil
	}
	b, err := with.in.TryRead()
	if errors.Is(err, rpipe.ErrWouldBlock) { // the partner seems to wait for room
		return p.ended(ctx)
	}
	if err == nil {
		with.early, with.kept = b, true
	}
	return err
}

// mismatched returns the bytes of a mismatched message from the member of t, nil without
// one. After such a message the member never sends the one that t awaits.
func (p *transport) mismatched(t *transfer) []byte {
	with := &p.partners[t.member]
	if with.kept && p.mismatches(t, with.early.Mem()) {
		return with.early.Mem()
	}
	if mem := with.eager.nextSlot(); with.eager.came() && p.mismatches(t, mem) {
		return mem
	}
	return nil
}

// mismatches reports whether a message belongs to another call, or came in another way
// than t with the turn of t. A transfer that sends has no such turn: it waits for room and
// offers, and any message of this call may come before those.
func (p *transport) mismatches(t *transfer, mem []byte) bool {
	return !p.ofCall(mem) || !t.out && turnOf(mem) == t.turn
}

// disagree returns an error that names the difference between the two ends of a message.
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

// inTurn returns an error unless a message has the turn of t. If the message is a later
// one, the one with the turn of t came, too: all ways together keep the order.
func (p *transport) inTurn(ctx context.Context, t *transfer, mem []byte) error {
	if turnOf(mem) == t.turn {
		return nil
	}
	p.watch.other = &p.partners[t.member]
	if err := p.look(ctx); err != nil {
		return err
	}
	if mem := p.mismatched(t); mem != nil {
		return p.disagree(ctx, t, mem)
	}
	return fmt.Errorf("message %d from rank %d in place of %d: %w", turnOf(mem), t.member, t.turn, rpipe.ErrCorrupt)
}
