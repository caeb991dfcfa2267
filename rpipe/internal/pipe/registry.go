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
// Openings register memory one after another, and sweeps release memory one after
// another. Both may take long, and so may the Stop of an end: mu is not held meanwhile.
//
// Locks: opening, ticking, sweeping, mu, in this order.
type Registry struct {
	slabs     slabs
	announcer announcer
	tallies   atomic.Uint32 // made so far
	opening   turn.Turn     // a call that opens ends holds it; it guards the Openings of teams
	life      context.Context
	endLife   context.CancelFunc

	ticking  sync.Mutex // held while the timer looks after closed ends
	sweeping sync.Mutex // held by the one goroutine that takes ends out of closing

	mu      sync.Mutex // held for moments
	open    map[*End]struct{}
	closing []*End // closed, and not in state CLOSED when they came
	timer   *time.Timer
	pause   wait.Pause // that the timer waits
}

// sweepSeldom is the longest pause between two ticks. The peer may have to open before this end
// can tell it of Close.
const sweepSeldom = 256 * time.Millisecond

// RegistryOf returns the registry of a team's rank.
func RegistryOf(t *team.Team) (*Registry, error) {
	a, err := t.Attach("rpipe", func() fabric.Attachment {
		r := &Registry{open: map[*End]struct{}{}, opening: turn.New(), slabs: slabs{growing: turn.New()}}
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
		r.closing = append(r.closing, p)
		r.pause = 0
	}
	r.mu.Unlock()
	if over {
		p.Role.Stop()
		return
	}
	r.sweep()
	r.later()
}

// sweep has closed ends do all that takes no wait, and lets go of those that are done. Each
// stays in closing meanwhile: later must find it, or the timer would stop.
func (r *Registry) sweep() {
	r.sweeping.Lock()
	defer r.sweeping.Unlock()
	for i := 0; ; {
		p := r.nth(i)
		switch {
		case p == nil:
			return
		case p.Advance(r.life, false):
			r.remove(i)
		default:
			i++
		}
	}
}

// nth returns a closed end, nil behind the last. Ends come behind the last one alone.
func (r *Registry) nth(i int) *End {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i >= len(r.closing) {
		return nil
	}
	return r.closing[i]
}

// remove takes out a closed end. The last one takes its place. Called with sweeping held.
func (r *Registry) remove(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.closing) - 1
	r.closing[i] = r.closing[last]
	r.closing = slices.Delete(r.closing, last, last+1)
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
// closed. An end that changes its place because a sweep removes another one has its turn
// now or at the next tick.
func (r *Registry) tick() {
	r.ticking.Lock()
	defer r.ticking.Unlock()
	for i := 0; ; i++ {
		p := r.nth(i)
		if p == nil {
			break
		}
		p.Advance(r.life, true)
	}
	r.sweep()
	r.later()
}

// Close stops all ends: the job ends.
func (r *Registry) Close() {
	r.endLife()
	_ = r.opening.Take(context.Background()) // registrations end
	defer r.opening.Give()
	r.ticking.Lock()
	defer r.ticking.Unlock()
	r.sweeping.Lock()
	defer r.sweeping.Unlock()
	for _, p := range r.empty() {
		p.Role.Stop()
	}
}

// empty takes out all ends, and lets no end in any more. Called with opening, ticking and
// sweeping held.
func (r *Registry) empty() []*End {
	r.mu.Lock()
	defer r.mu.Unlock()
	ends := slices.AppendSeq(r.closing, maps.Keys(r.open))
	r.open, r.closing = nil, nil
	if r.timer != nil {
		r.timer.Stop()
	}
	return ends
}

// Lingering returns the number of closed ends that still wait for their peers.
func (r *Registry) Lingering() int {
	r.sweep()
	r.sweeping.Lock()
	defer r.sweeping.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.closing)
}

// Desert has open ends over a layer of no more use, as err says, and lets go of closed
// ones.
func (r *Registry) Desert(l Layer, err error) {
	r.ticking.Lock() // the timer is not telling a peer anything over the layer
	defer r.ticking.Unlock()
	for _, p := range r.openOver(l) {
		_ = p.Breaks(err)
		p.Role.Stop()
	}
	r.sweep()
}

// Abandoned implements fabric.Abandoner. An end that closes tells its peer by itself.
func (r *Registry) Abandoned() map[int][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[int][]string{}
	for p := range r.open {
		if peer := p.team.Members[p.Peer]; p.closing.now() == stateOpen {
			names[peer] = append(names[peer], p.mine.Name)
		}
	}
	return names
}

// openOver returns the open ends over a layer.
func (r *Registry) openOver(l Layer) (ends []*End) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.open {
		if p.Layer == l {
			ends = append(ends, p)
		}
	}
	return ends
}
