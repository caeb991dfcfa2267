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

// lastMoment bounds how long a closed end, or a call that does not wait, tries to reach its peer.
const lastMoment = time.Second

// A Role is the part of closing in which a writer and a reader differ.
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
	look  SummaryEntry  // the peer's word of a summary, until it is told to look; then its number is 0
}

func (c *closing) now() state { return state(c.state.Load()) }

// Depart tells the peer that this end closes. It waits for an answer of the peer's rank at
// most. An error says that the peer may not know: the registry tells it a moment later.
func (p *End) Depart(ctx context.Context) error {
	switch {
	case p.Joined.Load():
		return p.step(ctx, eventClose, true)
	case p.Broken.Load() != nil:
		return p.step(ctx, eventUnfit, true)
	}
	atomics.Word64(p.Data[cardState:]).Store(cardClosed)
	if tries(ctx) {
		return p.step(ctx, eventAbandon, false) // Close looks for the peer
	}
	return p.step(ctx, eventAbandon, true)
}

// Advance has a closed end do all that it can do now. It reports whether the end has given
// its memory back. Without wait it leaves to the timer all that waits. Once ctx has ended, the job takes
// the memory back.
func (p *End) Advance(ctx context.Context, wait bool) bool {
	if !p.closing.mu.TryLock() {
		return false // another goroutine advances it
	}
	defer p.closing.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	wait = wait && p.Fate() == nil // else no call reaches the peer
	for p.advanceOnce(ctx, wait) {
	}
	return p.closing.now() == stateClosed
}

// halt stops the end, behind a goroutine that advances it.
func (p *End) halt() {
	p.closing.mu.Lock()
	defer p.closing.mu.Unlock()
	p.Role.Stop()
}

// advanceOnce reports whether the state has moved.
func (p *End) advanceOnce(ctx context.Context, wait bool) bool {
	before := p.closing.now()
	if before == stateClosed {
		return false // its memory is gone
	}
	e := p.observe()
	if _, enters := before.on(e); !enters {
		return false
	}
	if wait {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lastMoment)
		defer cancel()
	}
	_ = p.step(ctx, e, wait) // after an error the timer comes again
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

// step moves the end by an event, and by all events that follow from it. Without wait it waits
// for nothing.
func (p *End) step(ctx context.Context, e event, wait bool) (err error) {
	for e != noEvent {
		to, enters := p.closing.now().on(e)
		if !enters {
			return err
		}
		p.closing.state.Store(uint32(to))
		e, err = p.enter(ctx, to, wait)
	}
	return err
}

// enter does what is due in a state, and returns the event that follows.
func (p *End) enter(ctx context.Context, s state, wait bool) (event, error) {
	switch {
	case s == stateClosed:
		p.Role.Stop()
		p.Options.Summary.Drop(gone(p.Fate()))
		_ = p.Release() // no caller is left to take the error
	case s == stateLastAck:
		if p.Role.Finish(ctx, wait) {
			return eventLast, nil
		}
	case !wait: // the next ones wait
	case s == stateSynSent:
		return p.seek(ctx)
	case s == stateFinWait:
		return noEvent, p.Role.Deliver(ctx)
	case s == stateReset:
		if p.pokeSummary(ctx) && p.Disown(ctx) {
			return eventTold, nil
		}
	}
	return noEvent, nil
}

// seek looks for the peer. A peer whose last flag has come waits for this end's. If it is
// not there, its job has ended.
func (p *End) seek(ctx context.Context) (event, error) {
	heard := p.Role.Heard()
	err := p.Join(ctx, false)
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

// reachable reports whether the peer is there, as far as is known, and fits.
func (p *End) reachable() bool { return p.Broken.Load() == nil && p.Fate() == nil }

// gone reports whether a rank puts nothing anywhere any more.
func gone(fate error) bool {
	return errors.Is(fate, runtime.ErrRankDead) || errors.Is(fate, ErrPoolClosed)
}
