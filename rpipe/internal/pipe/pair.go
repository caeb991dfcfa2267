package pipe

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/rpipe/internal/turn"
)

// A Registry holds a rank's state of all its pipes. The rank's fabric owns it, and
// closes it ahead of itself.
//
// Memory is registered and given back, which may take its time, without mu held: by
// one opening after the other, and by one sweep after the other.
//
// Locks: opening, insisting, sweeping, mu, in this order.
type Registry struct {
	slabs    slabs
	reminder reminder
	tallies  atomic.Uint32 // made so far
	opening  turn.Turn     // a call that opens ends holds it; it guards the Openings of teams

	insisting sync.Mutex // held while the timer looks after lingering ends
	round     []lingerer // those
	life      context.Context
	endLife   context.CancelFunc

	sweeping sync.Mutex // held while lingering ends are asked to leave
	swept    []lingerer // those

	mu        sync.Mutex // held for moments
	open      map[Stopper]struct{}
	lingering []lingerer
	timer     *time.Timer
	pause     time.Duration // that the timer waits
}

// A Stopper is an open end that may touch its peer by itself.
type Stopper interface {
	Stop()
	// Appear lets the peer find this one, release takes back one that was not
	// used yet.
	Appear(ctx context.Context) error
	Release() error
	// Leaves reports whether the end was over this carrier, which is closed.
	Leaves(c *Carrier) bool
}

// registryOf returns the registry of a team's rank.
func registryOf(t *team.Team) (*Registry, error) {
	a, err := t.Attach("rpipe", func() fabric.Attachment {
		r := &Registry{open: map[Stopper]struct{}{}, opening: turn.New(), slabs: slabs{growing: turn.New()}}
		r.life, r.endLife = context.WithCancel(context.Background())
		return r
	})
	if err != nil {
		return nil, err
	}
	return a.(*Registry), nil
}

// number returns the next number of a tally, from 0.
func (r *Registry) number() uint32 { return r.tallies.Add(1) - 1 }

// A Pairing holds the names by which two ends find each other.
type Pairing struct {
	Team           *team.Team
	Name           string
	Writer, Reader int // in the team
}

// Key returns the key by which one end counts incarnations.
func (p *Pairing) Key(end string) string {
	return fmt.Sprintf("%s/%d-%d/%s", p.Name, p.Writer, p.Reader, end)
}

// Region names the memory of one end of an incarnation.
func (p *Pairing) Region(incarnation int, end string) string {
	return fmt.Sprintf("rpipe/%s/%s#%d/%d-%d/%s", p.Team.Name, p.Name, incarnation, p.Writer, p.Reader, end)
}

const (
	writersEnd = "w"
	readersEnd = "r"
)
