package pipe

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// lastMoment bounds how long a closing or closed end tries at a time to reach its peer.
const lastMoment = time.Second

// A parting holds the state of an end that closes or was closed. One of the registry's
// sweeps may look after it while the timer does.
type parting struct {
	mu       sync.Mutex // held for moments
	speaking bool       // to the peer; meanwhile the memory stays
	left     bool       // the memory is given back
	Unseen   bool       // the peer was not there: it finds the card
	alone    bool       // the peer has said its last word and is not there any more
	unlooked counter    // by which the peer is to be told to look; its number is 0 once that is done

	differs atomic.Bool // the cards do
	disowns atomic.Bool // and the peer knows
	Vain    atomic.Bool // the peer is never opened
}

// Speak runs say, which has something to tell the peer, if due says so.
func (b *parting) Speak(ctx context.Context, due func() bool, say func(ctx context.Context)) {
	b.mu.Lock()
	b.speaking = !b.left && due()
	speaking := b.speaking
	b.mu.Unlock()
	if !speaking {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastMoment)
	defer cancel()
	say(ctx)
	b.mu.Lock()
	b.speaking = false
	b.mu.Unlock()
}

// Leave runs release, if may says so.
func (b *parting) Leave(may func() bool, release func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.speaking || !may() {
		return false
	}
	b.left = true
	release()
	return true
}

// JoinLast is join of an end that closes, and does not wait for one that is not
// open. Contexts that have ended are no reason to leave the peer without a
// word: then it takes a moment of its own.
func (p *End) JoinLast(ctx context.Context) (deserted bool, err error) {
	_, deserted, err = p.Join(ctx, false)
	if err == nil || ctx.Err() == nil || !p.Reachable() {
		return deserted, err
	}
	ctx, cancel := momentOf(ctx)
	defer cancel()
	_, deserted, err = p.Join(ctx, false)
	return deserted, err
}

// Reachable reports whether the peer is there, as far as is known, and fits.
func (p *End) Reachable() bool { return p.Broken.Load() == nil && p.Fate() == nil }

// Rejoin looks once more for an end that was not met. heard reports whether it has said
// its last word: then it is there, and waits for this end's.
func (p *End) Rejoin(ctx context.Context, heard bool) (deserted bool) {
	b := &p.Parting
	if b.differs.Load() {
		p.disownOther(ctx)
		return false
	}
	_, deserted, err := p.Join(ctx, false)
	if err == nil && !p.Joined.Load() {
		b.Unseen, b.alone = true, heard
	}
	return deserted
}

// Two ends that differ put nothing into each other's memory, except that each tells its
// peer so. The peer then need not show its card any longer:
//
//	writer                                 reader
//	finds the cards differ                 finds the cards differ
//	disowned               ------------->  gives memory back
//	gives memory back      <-------------  disowned

// disownOther tells the peer that nothing is put there, if the two differ and
// it does not know.
func (p *End) disownOther(ctx context.Context) {
	if b := &p.Parting; b.differs.Load() && !b.disowns.Load() {
		b.disowns.Store(p.knock(ctx) && p.Disown(ctx))
	}
}

// OwesUnmet reports whether an end that was closed without being connected has something
// to say to the other one, or to hear from it.
func (p *End) OwesUnmet(heard bool) bool {
	b := &p.Parting
	switch {
	case b.differs.Load():
		return !b.disowns.Load()
	case p.Broken.Load() != nil:
		return false
	}
	return !b.alone && (!b.Unseen || heard || p.Disowned())
}

// MayLeaveUnmet reports whether neither rank needs such an end any more.
func (p *End) MayLeaveUnmet(heard bool) bool {
	b := &p.Parting
	return b.Vain.Load() || heard && b.alone || b.disowns.Load() && p.Disowned()
}
