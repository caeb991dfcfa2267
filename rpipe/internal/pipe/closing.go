package pipe

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/mutant"
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

// closing holds how far an end has come in closing. Calls of the end move it until Close, then
// Close does, then the registry.
type closing struct {
	mu       sync.Mutex   // held by the goroutine that advances the end
	known    standing     // the facts that do not lie in the end's memory
	departed atomic.Bool  // Depart was called
	released bool         // the memory is given back
	look     SummaryEntry // the peer's word of a summary, until it is told to look; then its number is 0
}

// Depart tells the peer that this end closes. It waits for a response of the peer's rank at
// most. An error says that the peer may not know: the registry tells it a moment later.
func (p *End) Depart(ctx context.Context) error {
	p.closing.departed.Store(true)
	p.closing.known.absent = false
	wait := true
	if !p.Joined.Load() {
		if p.Broken.Load() != nil {
			return nil
		}
		atomics.Word64(p.Data[cardState:]).Store(cardClosed)
		wait = !tries(ctx) // else Close looks for the peer
	}
	return p.proceed(ctx, wait, false)
}

// Advance has a closed end do all that it can do now. It reports whether the end has given
// its memory back. Without wait it leaves to the timer all that waits. Once ctx has ended, the job takes
// the memory back.
func (p *End) Advance(ctx context.Context, wait bool) bool {
	c := &p.closing
	if !c.mu.TryLock() {
		return false // another goroutine advances it
	}
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	wait = wait && p.Fate() == nil // else no call reaches the peer
	if wait {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lastMoment)
		defer cancel()
	}
	_ = p.proceed(ctx, wait, true) // after an error the timer comes again
	return c.released
}

// halt stops the end, behind a goroutine that advances it.
func (p *End) halt() {
	p.closing.mu.Lock()
	defer p.closing.mu.Unlock()
	p.Role.Stop()
}

// proceed takes the steps that are due, until the end must wait for its peer. Without wait it
// waits for nothing. Unless the end is closed, a call of the program may use its memory: the
// last two steps are the registry's.
func (p *End) proceed(ctx context.Context, wait, closed bool) error {
	for !p.closing.released {
		s := p.standing()
		s.gone = s.gone && closed
		next := s.due()
		if next >= stepFinish && !closed {
			return nil
		}
		mutant.Hesitate(mutant.Call)
		if done, err := p.take(ctx, next, wait); !done || err != nil {
			return err
		}
	}
	return nil
}

// standing returns all that the end knows of its closing.
func (p *End) standing() standing {
	s := p.closing.known
	s.gone = gone(p.Fate())
	s.connected, s.broken = p.Joined.Load(), p.Broken.Load() != nil
	s.refused = !s.connected && p.disowned()
	s.heard = p.Role.Heard()
	return s
}

// take takes a step. It is false if another step must wait for the peer, or for a call that may wait.
func (p *End) take(ctx context.Context, s step, wait bool) (done bool, err error) {
	known := &p.closing.known
	switch {
	case s == stepRelease:
		p.closing.released = true
		p.Role.Stop()
		p.Options.Summary.Drop(gone(p.Fate()))
		return true, p.Release()
	case s == stepFinish:
		known.over = p.Role.Finish(ctx, wait)
		return known.over, nil
	case !wait: // the next ones wait
	case s == stepSeek:
		return p.seek(ctx)
	case s == stepDeliver:
		known.delivered = true
		return true, p.Role.Deliver(ctx)
	case s == stepTell:
		known.told = p.tellRefusal(ctx)
		return known.told, nil
	}
	return false, nil
}

// seek looks for the peer. A peer whose last flag has come waits for this end's. If it is
// not there, its job has ended.
func (p *End) seek(ctx context.Context) (done bool, err error) {
	heard := p.Role.Heard()
	err = p.Join(ctx, false)
	switch {
	case err != nil && !p.reachable():
		return false, nil // it has nothing to be told, or Join has told it
	case err != nil:
		return false, err
	case p.Joined.Load():
		return true, nil
	}
	p.closing.known.over, p.closing.known.absent = heard, true
	return heard, nil
}

// tellRefusal tells the peer that the cards differ. It is false if the peer may not know.
func (p *End) tellRefusal(ctx context.Context) bool { return p.pokeSummary(ctx) && p.Disown(ctx) }

// reachable reports whether the peer is there, as far as is known, and fits.
func (p *End) reachable() bool { return p.Broken.Load() == nil && p.Fate() == nil }

// gone reports whether a rank puts nothing anywhere any more.
func gone(fate error) bool {
	return errors.Is(fate, runtime.ErrRankDead) || errors.Is(fate, ErrPoolClosed)
}
