package pipe

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/runtime"
)

// lastMoment bounds how long a closing or closed end tries at a time to reach its peer.
const lastMoment = time.Second

// A Role is the part of closing in which a writer, a reader and the ends of a heap differ.
type Role interface {
	// Deliver puts the FIN at the connected peer, ahead of it all that the peer must have.
	// Further calls do nothing.
	Deliver(ctx context.Context) error
	// Heard reports whether the peer's last flag is here.
	Heard() bool
	// Finish posts this end's last flag behind the peer's. It reports whether that is done.
	// Without wait it waits for nothing.
	Finish(ctx context.Context, wait bool) bool
	// Stop has the end put nothing any more.
	Stop()
}

// closing holds how far an end has come in closing. Calls of the end move the state until
// Close, then Close does, then the registry.
type closing struct {
	mu    sync.Mutex    // held by the goroutine that advances the end
	state atomic.Uint32 // a state
	look  Counter       // the peer's word of a summary, until it is told to look; then its number is 0
}

func (c *closing) now() state { return state(c.state.Load()) }

// Depart tells the peer that this end closes. It waits for an answer of the peer's rank at
// most. An error says that the peer may not know: the registry tells it later.
func (p *End) Depart(ctx context.Context) error {
	switch {
	case p.Joined.Load():
		return p.step(ctx, eventClose, p.joinLast)
	case p.Broken.Load() != nil:
		return p.step(ctx, eventUnfit, p.joinLast)
	}
	atomics.Word64(p.Data[cardState:]).Store(cardClosed)
	return p.step(ctx, eventAbandon, p.joinLast)
}

// Advance has a closed end do all that it can do now. It reports whether the end has given
// its memory back. Without wait it leaves to the timer all that waits.
func (p *End) Advance(ctx context.Context, wait bool) bool {
	if !p.closing.mu.TryLock() {
		return false // another goroutine advances it
	}
	defer p.closing.mu.Unlock()
	wait = wait && p.Fate() == nil // else no call reaches the peer
	for p.advanceOnce(ctx, wait) {
	}
	return p.closing.now() == stateClosed
}

// advanceOnce reports whether the state has moved.
func (p *End) advanceOnce(ctx context.Context, wait bool) bool {
	before := p.closing.now()
	if before == stateClosed {
		return false // its memory is gone
	}
	e := p.observe()
	if to, due := before.on(e); to == before && due == actNothing {
		return false
	}
	if !wait {
		_ = p.step(ctx, e, nil)
		return p.closing.now() != before
	}
	ctx, cancel := context.WithTimeout(ctx, lastMoment)
	defer cancel()
	_ = p.step(ctx, e, p.joinNow) // after an error the timer comes again
	return p.closing.now() != before
}

// observe returns the event that the state of the peer shows.
func (p *End) observe() event {
	switch {
	case gone(p.Fate()):
		return eventGone
	case p.Joined.Load():
	case p.disowned():
		return eventPeerReset
	}
	if p.Role.Heard() {
		return eventPeerLast
	}
	return eventLook
}

// A joiner connects to the peer if that is there. A step without one waits for nothing.
type joiner func(ctx context.Context) error

// step moves the end by an event, and by all events that follow from it.
func (p *End) step(ctx context.Context, e event, join joiner) (err error) {
	for e != noEvent {
		to, due := p.closing.now().on(e)
		p.closing.state.Store(uint32(to))
		e, err = p.act(ctx, due, join)
	}
	return err
}

// act performs the action, and returns the event that follows.
func (p *End) act(ctx context.Context, due action, join joiner) (event, error) {
	switch {
	case due == actRelease:
		p.Role.Stop()
		p.Options.Summary.Drop(gone(p.Fate()))
		_ = p.Release() // no caller is left to take the error
	case due == actFinish:
		if p.Role.Finish(ctx, join != nil) {
			return eventLast, nil
		}
	case join == nil: // the next ones wait
	case due == actSeek:
		return p.seek(ctx, join)
	case due == actDeliver:
		return noEvent, p.Role.Deliver(ctx)
	case due == actReset:
		if p.pokeSummary(ctx) && p.Disown(ctx) {
			return eventTold, nil
		}
	}
	return noEvent, nil
}

// seek looks for the peer. A peer whose last flag has come waits for this end's. If it is
// not there, its job has ended.
func (p *End) seek(ctx context.Context, join joiner) (event, error) {
	heard := p.Role.Heard()
	err := join(ctx)
	switch {
	case err != nil && !p.reachable():
		return noEvent, nil // it has nothing to be told, or Join has moved the state
	case err != nil:
		return noEvent, err
	case p.Joined.Load():
		return eventConnected, nil
	case heard:
		return eventVanished, nil
	}
	return eventAbsent, nil
}

// joinNow connects to the peer if that is there.
func (p *End) joinNow(ctx context.Context) error {
	return p.Join(ctx, false)
}

// joinLast is joinNow for a call that closes. If ctx has ended, it takes a moment of its
// own: the peer shall know.
func (p *End) joinLast(ctx context.Context) error {
	err := p.joinNow(ctx)
	if err == nil || ctx.Err() == nil || !p.reachable() {
		return err
	}
	ctx, cancel := momentOf(ctx)
	defer cancel()
	return p.joinNow(ctx)
}

// reachable reports whether the peer is there, as far as is known, and fits.
func (p *End) reachable() bool { return p.Broken.Load() == nil && p.Fate() == nil }

// gone reports whether a rank puts nothing anywhere any more.
func gone(fate error) bool {
	return errors.Is(fate, runtime.ErrRankDead) || errors.Is(fate, ErrPoolClosed)
}
