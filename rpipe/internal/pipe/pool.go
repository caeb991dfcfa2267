package pipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A Pool is a window that carries pipes, which then use nothing but the
// window's public calls: PutNotify, Get, Flush and waits for notification slots.
// The paper calls this the portability layer: there rpipe runs on the windows of MPI-3.
// Pipes behave the same over it, with two exceptions. Making the pool reserves their
// memory. They end when any rank of its team is gone, as waits on windows do.
//
// At each rank a pool has places, one for each end of a pipe:
//
//	window memory                          notification slots
//	directory  8 bytes a place: whose      0           news: an end that this rank waits for is open
//	           end is there                1           bell: waits of this rank look again
//	place 0    data of the end, stage      2 ...       requests: rank r waits for an end here
//	place 1    ...                         2 + ranks   flags of place 0, disowned
//	                                       ...         flags of place 1 ...
//	                                       the last    counts of fan-ins, one a place
//
// A fan-in takes a place for each of its pipes; a fan-out one for each of its pipes,
// and one where its blocks are filled; a conveyor two for each rank, and active
// messages four.
type Pool struct {
	shape
	w    *window.Window[byte]
	team *team.Team
	reg  *Registry

	waiting atomic.Int32
	untils  sync.Pool // of *window.Until: what is waited for

	mu      sync.Mutex
	taken   []bool // by place
	counted []bool // by slot of a count
	closed  atomic.Bool
}

// A shape holds the sizes that all ranks of a pool must share.
type shape struct {
	Ends   int // places at each rank
	Width  int
	Blocks int
	Heap   int
	Err    string // why this rank cannot
}

// newsSlot grows when an end opens that this rank waits for.
const (
	newsSlot = iota
	bellSlot
	firstRequest
)

// OverWindow makes a window on t that carries pipes: at each rank up to so many
// ends at a time of pipes with these options, or with smaller heaps, widths and
// numbers of blocks. All ranks give the same. Open the pipes WithWindow. Kind:
// collective.
func OverWindow(ctx context.Context, t *runtime.Team, ends int, opts ...Option) (*Pool, error) {
	ctx = wait.Context(ctx)
	if t == nil {
		return nil, fmt.Errorf("OverWindow: %w", runtime.ErrTeam)
	}
	o, err := Collect(opts)
	if err == nil {
		err = Within("%d ends at each rank", ends, 1, maxEnds)
	}
	c := &Pool{team: team.Of(t), shape: shape{Ends: ends, Width: o.Width, Blocks: o.Blocks, Heap: o.Heap}}
	if err == nil {
		c.reg, err = registryOf(c.team)
	}
	if err := c.agree(ctx, t, err); err != nil {
		return nil, fmt.Errorf("OverWindow: %w", err)
	}
	slots := c.slotsOf(ends) + ends
	c.w, err = window.Allocate[byte](ctx, t, c.dataOf(ends), window.WithSlots(slots), window.WithName("pool of pipes"))
	if err != nil {
		return nil, fmt.Errorf("OverWindow: %w", err)
	}
	c.taken, c.counted = make([]bool, ends), make([]bool, ends)
	c.untils.New = func() any { return &window.Until{Condition: window.NotEqual} }
	return c, nil
}

// maxEnds keeps a directory to a size that is read through in a moment.
const maxEnds = 1 << 16

// agree compares shapes with everyone. A rank that cannot says so, so that none
// waits.
func (c *Pool) agree(ctx context.Context, t *runtime.Team, bad error) error {
	if bad != nil {
		c.Err = bad.Error()
	}
	mine, err := json.Marshal(c.shape)
	if err != nil {
		return err
	}
	all, err := t.Exchange(ctx, mine)
	if bad != nil || err != nil {
		return errors.Join(bad, err)
	}
	for rank, b := range all {
		var other shape
		if err := json.Unmarshal(b, &other); err != nil {
			return fmt.Errorf("shape of rank %d: %w", rank, err)
		}
		if other != c.shape {
			return fmt.Errorf("%w: rank %d has %v, rank %d has %v; give all ranks the same", runtime.ErrMismatch, t.Rank(), c.shape, rank, other)
		}
	}
	return nil
}

func (s shape) String() string {
	if s.Err != "" {
		return "an error (" + s.Err + ")"
	}
	return fmt.Sprintf("%d ends of width %d, %d blocks, heap %d", s.Ends, s.Width, s.Blocks, s.Heap)
}

// End is the largest pipe that the pool's places have room for.
func (s *shape) End() *Spec { return &Spec{Heap: s.Heap, Width: s.Width, blocks: s.Blocks} }

// room is the size of a place. Each end has a card, at most one ring of tags, and
// a heap or a stage.
func (s *shape) room() int { return CardSize + s.End().tagBytes() + s.Heap }

// dataOf is where a place's memory begins.
func (s *shape) dataOf(place int) int { return Line(8*s.Ends) + place*s.room() }

// flags is how many slots a place has for flags.
func (s *shape) flags() int { return s.End().readerFlags() }

// slotsOf is a place's first slot.
func (c *Pool) slotsOf(place int) int {
	return firstRequest + len(c.team.Members) + place*(c.flags()+1)
}

// Close ends the pool at all ranks and gives its memory back. Pipes over it are
// closed before, at both ends: those that are still open are of no more use.
// Kind: collective.
func (c *Pool) Close(ctx context.Context) error {
	ctx = wait.Context(ctx)
	if c.closed.Swap(true) {
		return fmt.Errorf("Close of a pool: %w", errPoolClosed)
	}
	c.reg.desert(c)
	if err := c.w.Free(ctx); err != nil {
		return fmt.Errorf("Close of a pool: %w", err)
	}
	return nil
}

// Take returns a free place.
func (c *Pool) Take() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return 0, errPoolClosed
	}
	for place, taken := range c.taken {
		if !taken {
			c.taken[place] = true
			return place, nil
		}
	}
	return 0, fmt.Errorf("%w: all %d ends of the pool are open, or wait for the other end to close; give OverWindow more",
		runtime.ErrExhausted, c.Ends)
}

// give takes a place back as it was in the beginning.
func (c *Pool) give(place int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return nil
	}
	c.entry(place).Store(0)
	data := c.w.Local()[c.dataOf(place):]
	clear(data[:c.room()-c.Heap]) // old bytes in a heap mean nothing
	for slot := c.slotsOf(place); slot < c.slotsOf(place+1); slot++ {
		if _, err := c.w.ResetNotify(slot, 0); err != nil {
			return err
		}
	}
	c.taken[place] = false
	return nil
}

// entry is a place's word in this rank's directory.
func (c *Pool) entry(place int) *atomic.Uint64 { return atomics.Word64(c.w.Local()[8*place:]) }

// board makes an end's link over its pool.
func (p *End) board(t *team.Team, mine, theirs LinkEnd, stage int) (Link, error) {
	c := p.Pool
	if c.team.Name != t.Name {
		return nil, fmt.Errorf("%w: the pool is one of team %s", runtime.ErrTeam, c.team.Name)
	}
	return newWindowLink(c, p.Peer, mine, theirs, stage, p.Fma, p.prepare)
}

// desert has open ends over a pool of no more use, and lets go of closed ones.
func (r *Registry) desert(c *Pool) {
	r.ticking.Lock() // the timer is not telling a peer anything over the pool
	defer r.ticking.Unlock()
	r.mu.Lock()
	for p := range r.open {
		if p.Pool == c {
			_ = p.Breaks(errPoolClosed)
			p.Role.Stop()
		}
	}
	r.mu.Unlock()
	r.sweep()
}
