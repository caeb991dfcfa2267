package rpipe

import (
	"fmt"
	"sync"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/runtime"
)

// A registry is what a rank knows of all its pipes. It hangs on the rank's fabric,
// which closes it ahead of itself.
type registry struct {
	mu        sync.Mutex
	openings  map[string]int // how often a name was opened, by role, team and ranks
	open      map[stopper]struct{}
	lingering []lingerer
	slabs     slabs
}

// A stopper is an open end that may touch the other one by itself.
type stopper interface {
	stop()
	// leaves tells that the end was over this carrier, which is closed.
	leaves(c *Carrier) bool
}

// A lingerer is an end that was closed, whose memory the other end may still put
// to. leave gives it back once that has said that it will not.
type lingerer interface{ leave() (left bool) }

// registryOf returns the registry of a team's rank.
func registryOf(t *fabric.Team) (*registry, error) {
	a, err := t.Attach("rpipe", func() fabric.Attachment {
		return &registry{openings: map[string]int{}, open: map[stopper]struct{}{}}
	})
	if err != nil {
		return nil, err
	}
	return a.(*registry), nil
}

// enter has begin open the next incarnation of a name, counts it if that works,
// and looks after those that linger.
func (r *registry) enter(name string, begin func(incarnation int) (stopper, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		return runtime.ErrClosed
	}
	r.sweep()
	s, err := begin(r.openings[name])
	if err != nil {
		return err
	}
	r.openings[name]++
	r.open[s] = struct{}{}
	return nil
}

// number returns the next number of a tally, from 0.
func (r *registry) number() uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.openings["tally"]
	r.openings["tally"]++
	return uint32(n)
}

// exit takes out an end that was closed, and keeps it as long as it lingers.
func (r *registry) exit(s stopper, l lingerer) {
	s.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil { // the job has ended and has taken everything back
		return
	}
	delete(r.open, s)
	r.lingering = append(r.lingering, l)
	r.sweep()
}

// sweep lets go of those that need not linger any more.
func (r *registry) sweep() {
	still := r.lingering[:0]
	for _, l := range r.lingering {
		if !l.leave() {
			still = append(still, l)
		}
	}
	clear(r.lingering[len(still):])
	r.lingering = still
}

// Close stops everything that is open: the job ends.
func (r *registry) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.open {
		s.stop()
	}
	r.open, r.lingering = nil, nil
}

// A pairing is what two ends find each other by.
type pairing struct {
	team           *fabric.Team
	name           string
	writer, reader int // in the team
}

// key is what incarnations are counted by at one end.
func (p *pairing) key(end string) string {
	return fmt.Sprintf("%s/%s/%d-%d/%s", p.team.Name, p.name, p.writer, p.reader, end)
}

// region names the memory of one end of an incarnation.
func (p *pairing) region(incarnation int, end string) string {
	return fmt.Sprintf("rpipe/%s/%s#%d/%d-%d/%s", p.team.Name, p.name, incarnation, p.writer, p.reader, end)
}

const (
	writersEnd = "w"
	readersEnd = "r"
)
