package rpipe

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

// A registry holds a rank's state of all its pipes. The rank's fabric owns it, and
// closes it ahead of itself.
//
// Memory is registered and given back, which may take its time, without mu held: by
// one opening after the other, and by one sweep after the other.
//
// Locks: opening, insisting, sweeping, mu, in this order.
type registry struct {
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
	open      map[stopper]struct{}
	lingering []lingerer
	timer     *time.Timer
	pause     time.Duration // that the timer waits
}

// A stopper is an open end that may touch its peer by itself.
type stopper interface {
	stop()
	// appear lets the peer find this one, release takes back one that was not
	// used yet.
	appear(ctx context.Context) error
	release() error
	// leaves reports whether the end was over this carrier, which is closed.
	leaves(c *Carrier) bool
}

// registryOf returns the registry of a team's rank.
func registryOf(t *team.Team) (*registry, error) {
	a, err := t.Attach("rpipe", func() fabric.Attachment {
		r := &registry{open: map[stopper]struct{}{}, opening: turn.New(), slabs: slabs{growing: turn.New()}}
		r.life, r.endLife = context.WithCancel(context.Background())
		return r
	})
	if err != nil {
		return nil, err
	}
	return a.(*registry), nil
}

// number returns the next number of a tally, from 0.
func (r *registry) number() uint32 { return r.tallies.Add(1) - 1 }

// A pairing holds the names by which two ends find each other.
type pairing struct {
	team           *team.Team
	name           string
	writer, reader int // in the team
}

// key returns the key by which one end counts incarnations.
func (p *pairing) key(end string) string {
	return fmt.Sprintf("%s/%d-%d/%s", p.name, p.writer, p.reader, end)
}

// region names the memory of one end of an incarnation.
func (p *pairing) region(incarnation int, end string) string {
	return fmt.Sprintf("rpipe/%s/%s#%d/%d-%d/%s", p.team.Name, p.name, incarnation, p.writer, p.reader, end)
}

const (
	writersEnd = "w"
	readersEnd = "r"
)
