package pipe

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe/internal/turn"
)

// A Registry holds a rank's state of all its pipes. The rank's fabric owns it, and
// closes it ahead of itself.
//
// Openings register memory one after another. A registration, a call to a peer and the Stop of
// an end may take long: mu is not held meanwhile.
//
// Locks: opening, ticking, closing.mu of an end, mu, in this order.
type Registry struct {
	slabs     slabs
	announcer announcer
	tallies   atomic.Uint32 // made so far
	opening   turn.Turn     // a call that opens ends holds it; it guards the Openings of teams
	life      context.Context
	endLife   context.CancelFunc

	ticking sync.Mutex // held while the timer looks after closed ends

	mu      sync.Mutex // held for moments
	open    map[*End]struct{}
	closing map[*End]struct{} // closed, and their memory was not given back when they came
	recent  []*End            // the last of closing, maxRecent at most
	timer   *time.Timer
	pause   wait.Pause // that the timer waits
}

// sweepSeldom is the longest pause between two ticks. The peer may have to open before this end
// can tell it of Close.
const sweepSeldom = 256 * time.Millisecond

// maxRecent is the number of closed ends after which an opening looks. Most ends that can give memory back were
// closed lately. The timer looks after all of them.
const maxRecent = 16

// RegistryOf returns the registry of a team's rank.
func RegistryOf(t *team.Team) (*Registry, error) {
	a, err := t.Attach("rpipe", func() fabric.Attachment {
		r := &Registry{open: map[*End]struct{}{}, closing: map[*End]struct{}{}, opening: turn.New(), slabs: slabs{growing: turn.New()}}
		r.announcer.Start(beat, r.announcer.look)
		r.life, r.endLife = context.WithCancel(context.Background())
		return r
	})
	if err != nil {
		return nil, err
	}
	return a.(*Registry), nil
}

// number returns the next number of a summary, from 0.
func (r *Registry) number() uint32 { return r.tallies.Add(1) - 1 }

// Exit takes out an end that was closed, and looks after it until it gives its memory back.
func (r *Registry) Exit(p *End) {
	r.mu.Lock()
	over := r.open == nil // the job has ended and has taken everything back
	if !over {
		delete(r.open, p)
		r.gather(p)
		r.pause = 0
	}
	r.mu.Unlock()
	if over {
		p.Role.Stop()
		return
	}
	r.advance(p, false)
	r.later()
}

// gather keeps a closed end. The caller holds mu.
func (r *Registry) gather(p *End) {
	r.closing[p] = struct{}{}
	if r.recent = append(r.recent, p); len(r.recent) > maxRecent {
		r.recent = slices.Delete(r.recent, 0, 1)
	}
}

// sweep has closed ends do all that they can do now, and lets go of those that are done. With
// wait it may wait for peers. Each end stays in closing meanwhile: later must find it, or the timer
// would stop.
func (r *Registry) sweep(wait bool) {
	for _, p := range r.ends(false) {
		r.advance(p, wait)
	}
}

// sweepRecent is sweep of the ends that were closed last. So an opening costs the same beside any number of
// closed ends whose peers never open.
func (r *Registry) sweepRecent() {
	r.mu.Lock()
	recent := slices.Clone(r.recent)
	r.mu.Unlock()
	for _, p := range recent {
		r.advance(p, false)
	}
}

// advance is sweep of one end.
func (r *Registry) advance(p *End, wait bool) {
	if p.Advance(r.life, wait) {
		r.mu.Lock()
		delete(r.closing, p)
		r.recent = slices.DeleteFunc(r.recent, func(q *End) bool { return q == p })
		r.mu.Unlock()
	}
}

// ends returns the closed ends, with open also those that are not closed.
func (r *Registry) ends(open bool) []*End {
	r.mu.Lock()
	defer r.mu.Unlock()
	ends := slices.Collect(maps.Keys(r.closing))
	if open {
		ends = slices.AppendSeq(ends, maps.Keys(r.open))
	}
	return ends
}

// later sets the timer, if an end is left that is not done.
func (r *Registry) later() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil || len(r.closing) == 0 {
		return
	}
	pause := r.pause.Next(sweepSeldom)
	if r.timer == nil {
		r.timer = time.AfterFunc(pause, r.tick)
		return
	}
	r.timer.Reset(pause)
}

// tick has closed ends tell their peers. That may wait; meanwhile pipes are opened and
// closed.
func (r *Registry) tick() {
	r.ticking.Lock()
	defer r.ticking.Unlock()
	r.sweep(true)
	r.later()
}

// Close stops all ends: the job ends. No end is let in any more.
func (r *Registry) Close() {
	r.endLife()
	_ = r.opening.Take(context.Background()) // registrations end
	defer r.opening.Give()
	ends := r.ends(true)
	r.mu.Lock()
	r.open, r.closing, r.recent = nil, nil, nil
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Unlock()
	for _, p := range ends {
		p.halt()
	}
}

// Lingering returns the number of closed ends that still wait for their peers.
func (r *Registry) Lingering() int {
	r.sweep(false)
	return len(r.ends(false))
}

// Desert has ends over a layer of no more use, as err says, and lets go of closed ones.
func (r *Registry) Desert(l Layer, err error) {
	for _, p := range r.ends(true) {
		if p.Layer == l {
			_ = p.Breaks(err)
			p.halt()
		}
	}
	r.sweep(false)
}

// Abandoned implements fabric.Abandoner. An end that closes tells its peer by itself.
func (r *Registry) Abandoned() map[int][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[int][]string{}
	for p := range r.open {
		if peer := p.team.Members[p.Peer]; !p.closing.departed.Load() && (p.Joined.Load() || p.Broken.Load() == nil) {
			names[peer] = append(names[peer], p.mine.Name)
		}
	}
	return names
}
