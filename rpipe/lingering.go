package rpipe

import (
	"context"
	"time"
)

// Ends that were closed linger until the other one puts nothing more there. They are
// looked after as other pipes are opened and closed, and by a timer: the other end may
// have to open before this end can tell it of Close.
//
//	Close   ----> lingering ----> leave: memory goes back
//	                ^    |
//	                +----+ insist, after 1 ms, 2, 4 and so on
const (
	sweepSoon   = time.Millisecond
	sweepSeldom = 256 * time.Millisecond
)

// A lingerer is an end that was closed, whose memory the other end may still put
// to. leave gives it back once that has said that it will not.
type lingerer interface{ leave() (left bool) }

// An insister is a lingerer that may have something to tell the other end, once that has
// opened. It waits for no more than a moment.
type insister interface{ insist(ctx context.Context) }

// exit takes out an end that was closed, and keeps it as long as it lingers.
func (r *registry) exit(s stopper, l lingerer) {
	r.mu.Lock()
	over := r.open == nil // the job has ended and has taken everything back
	if !over {
		delete(r.open, s)
		r.lingering = append(r.lingering, l)
		r.pause = 0
	}
	r.mu.Unlock()
	if over {
		s.stop()
		return
	}
	r.sweep()
	r.later()
}

// sweep lets go of those that need not linger any more.
func (r *registry) sweep() {
	r.sweeping.Lock()
	defer r.sweeping.Unlock()
	r.mu.Lock()
	all := r.lingering
	r.lingering = nil
	r.mu.Unlock()
	still := all[:0]
	for _, l := range all {
		if !l.leave() {
			still = append(still, l)
		}
	}
	clear(all[len(still):])
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lingering = append(still, r.lingering...)
}

// later has the timer look after those that linger, if any do.
func (r *registry) later() {
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

// tick has those that linger say what they have to say. Meanwhile pipes are opened
// and closed.
func (r *registry) tick() {
	r.insisting.Lock()
	defer r.insisting.Unlock()
	for _, l := range r.gather() {
		if l, ok := l.(insister); ok {
			l.insist(r.life)
		}
	}
	clear(r.round)
	r.sweep()
	r.later()
}

// gather returns those that linger. Called with insisting held.
func (r *registry) gather() []lingerer {
	r.sweeping.Lock() // none is left out
	defer r.sweeping.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.round = append(r.round[:0], r.lingering...)
	return r.round
}

// Close stops everything that is open or lingers: the job ends.
func (r *registry) Close() {
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
		s.stop()
	}
	for _, l := range r.lingering {
		if s, ok := l.(stopper); ok {
			s.stop()
		}
	}
	r.open, r.lingering = nil, nil
	if r.timer != nil {
		r.timer.Stop()
	}
}
