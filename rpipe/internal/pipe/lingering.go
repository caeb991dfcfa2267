package pipe

import (
	"context"
	"time"
)

// Closed ends linger until their peers put nothing more there. The registry looks after
// them as it opens and closes pipes, and by a timer: the peer may have to open before
// this end can tell it of Close.
//
//	Close   ----> lingering ----> leave: memory goes back
//	                ^    |
//	                +----+ insist, after 1 ms, 2, 4 and so on
const (
	sweepSoon   = time.Millisecond
	sweepSeldom = 256 * time.Millisecond
)

// A lingerer is a closed end to whose memory the peer may still put. leave gives the
// memory back once the peer has said that it puts nothing more.
type lingerer interface{ Leave() (left bool) }

// An insister is a lingerer that may have something to tell the peer, once that has
// opened. It waits for no more than a moment.
type insister interface{ Insist(ctx context.Context) }

// Exit takes out an end that was closed, and keeps it as long as it lingers.
func (r *Registry) Exit(s Stopper, l lingerer) {
	r.mu.Lock()
	over := r.open == nil // the job has ended and has taken everything back
	if !over {
		delete(r.open, s)
		r.lingering = append(r.lingering, l)
		r.pause = 0
	}
	r.mu.Unlock()
	if over {
		s.Stop()
		return
	}
	r.sweep()
	r.later()
}

// sweep lets go of ends that need not linger any more. The list stays complete
// meanwhile: later must find it so, or the timer would stop while ends linger.
func (r *Registry) sweep() {
	r.sweeping.Lock()
	defer r.sweeping.Unlock()
	r.mu.Lock()
	r.swept = append(r.swept[:0], r.lingering...)
	r.mu.Unlock()
	for i, l := range r.swept {
		if l.Leave() {
			r.swept[i] = nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	still := r.lingering[:0]
	for i, l := range r.lingering { // exit may have added some behind
		if i >= len(r.swept) || r.swept[i] != nil {
			still = append(still, l)
		}
	}
	clear(r.lingering[len(still):])
	r.lingering = still
	clear(r.swept)
}

// later has the timer look after lingering ends, if any do.
func (r *Registry) later() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil || len(r.lingering) == 0 {
		return
	}
	r.pause = min(max(2*r.pause, sweepSoon), sweepSeldom)
	if r.timer == nil {
		r.timer = time.AfterFunc(r.pause, r.tick)
		return
	}
	r.timer.Reset(r.pause)
}

// tick has lingering ends say what they have to say. Meanwhile pipes are opened
// and closed.
func (r *Registry) tick() {
	r.insisting.Lock()
	defer r.insisting.Unlock()
	for _, l := range r.gather() {
		if l, ok := l.(insister); ok {
			l.Insist(r.life)
		}
	}
	clear(r.round)
	r.sweep()
	r.later()
}

// gather returns lingering ends. Called with insisting held.
func (r *Registry) gather() []lingerer {
	r.sweeping.Lock() // none is left out
	defer r.sweeping.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.round = append(r.round[:0], r.lingering...)
	return r.round
}

// Close stops everything that is open or lingers: the job ends.
func (r *Registry) Close() {
	r.endLife()
	_ = r.opening.Take(context.Background()) // registrations and what they wait for come to their end
	defer r.opening.Give()
	r.insisting.Lock()
	defer r.insisting.Unlock()
	r.sweeping.Lock()
	defer r.sweeping.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.open {
		s.Stop()
	}
	for _, l := range r.lingering {
		if s, ok := l.(Stopper); ok {
			s.Stop()
		}
	}
	r.open, r.lingering = nil, nil
	if r.timer != nil {
		r.timer.Stop()
	}
}

// Lingering returns the number of closed ends that still wait for their peers.
func (r *Registry) Lingering() int {
	r.sweep()
	r.sweeping.Lock()
	defer r.sweeping.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lingering)
}
