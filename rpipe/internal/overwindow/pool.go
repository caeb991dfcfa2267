// Package overwindow carries pipes over a window's public calls.
package overwindow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A Pool is a window that carries pipes. They move and look at data by nothing but the
// window's public calls: PutNotify, Get, Flush, and Slot.
// The paper calls this the portability layer: there rpipe runs on the windows of MPI-3.
// Pipes behave the same over it, with one exception: making the pool reserves their memory.
type Pool struct{ layer layer }

// Layer returns the layer of pipes over c, nil for none.
func Layer(c *Pool) pipe.Layer {
	if c == nil {
		return nil
	}
	return &c.layer
}

// A layer holds the places of a pool. At each rank a pool has places, one for each end of a pipe:
//
//	window memory                          notification slots
//	directory  8 bytes a place: whose      0           news: an end that this rank waits for is open
//	           end is there
//	place 0    data of the end, stage      1 ...       requests: rank r waits for an end here
//	place 1    ...                         1 + ranks   flags of place 0, disowned
//	                                       ...         flags of place 1 ...
//
// A fan-in takes a place for each of its pipes. A fan-out takes one for each of its pipes,
// and one where its blocks are filled. A conveyor takes two for each rank, active messages
// take four.
type layer struct {
	ends        int // places at each rank
	heap        int // bytes of a place that mean nothing when it is free
	room, flags int // of a place: bytes, and slots for flags
	w           *window.Window[byte]
	team        *team.Team
	reg         *pipe.Registry

	mu     sync.Mutex
	taken  []bool // by place
	closed atomic.Bool
}

// newsSlot grows when an end opens that this rank waits for.
const (
	newsSlot = iota
	firstRequest
)

// New makes a window on t that carries pipes: at each rank up to so many
// ends at a time. The pipes have these options, or smaller heaps, widths and numbers of
// blocks. All ranks give the same. Open the pipes WithWindow. Kind:
// collective.
func New(ctx context.Context, t *runtime.Team, ends int, opts ...pipe.Option) (*Pool, error) {
	ctx = wait.Context(ctx)
	if t == nil {
		return nil, fmt.Errorf("OverWindow: %w", runtime.ErrTeam)
	}
	o, err := pipe.Collect(opts)
	if err == nil {
		err = pipe.Within("%d ends at each rank", ends, 1, maxEnds)
	}
	pool := &Pool{layer{team: team.Of(t), ends: ends, heap: o.Heap}}
	c := &pool.layer
	if err == nil {
		c.room, c.flags = o.Largest()
		c.reg, err = pipe.RegistryOf(c.team)
	}
	err = agree(ctx, t, fmt.Sprintf("%d ends of width %d, %d blocks, heap %d", ends, o.Width, o.Blocks, o.Heap), err)
	if err == nil {
		c.w, err = window.Allocate[byte](ctx, t, c.dataOf(ends), window.WithSlots(c.slotsOf(ends)), window.WithName("pool of pipes"))
	}
	if err != nil {
		return nil, fmt.Errorf("OverWindow: %w", err)
	}
	c.taken = make([]bool, ends)
	return pool, nil
}

// maxEnds keeps a directory to a size that is read through in a moment.
const maxEnds = 1 << 16

// agree compares the descriptions of the pool at all ranks. A rank that cannot make it says so,
// so that none waits.
func agree(ctx context.Context, t *runtime.Team, mine string, bad error) error {
	if bad != nil {
		mine = "an error (" + bad.Error() + ")"
	}
	all, err := t.Exchange(ctx, []byte(mine))
	if bad != nil || err != nil {
		return errors.Join(bad, err)
	}
	for rank, theirs := range all {
		if string(theirs) != mine {
			return fmt.Errorf("%w: rank %d has %s, rank %d has %s; give all ranks the same", runtime.ErrMismatch, t.Rank(), mine, rank, theirs)
		}
	}
	return nil
}

// dataOf is where a place's memory begins.
func (c *layer) dataOf(place int) int { return pipe.Line(8*c.ends) + place*c.room }

// slotsOf is a place's first slot.
func (c *layer) slotsOf(place int) int {
	return firstRequest + len(c.team.Members) + place*(c.flags+1)
}

// Close ends the pool at all ranks and gives its memory back. Pipes over it are
// closed before, at both ends: those that are still open are of no more use.
// Kind: collective.
func (p *Pool) Close(ctx context.Context) error {
	ctx = wait.Context(ctx)
	c := &p.layer
	if c.closed.Swap(true) {
		return fmt.Errorf("Close of a pool: %w", pipe.ErrPoolClosed)
	}
	c.reg.Desert(c, pipe.ErrPoolClosed)
	c.team.Bell().Ring() // calls that wait see that it is closed
	if err := c.w.Free(ctx); err != nil {
		return fmt.Errorf("Close of a pool: %w", err)
	}
	return nil
}

// Err implements pipe.Layer.
func (c *layer) Err() error {
	if c.closed.Load() {
		return pipe.ErrPoolClosed
	}
	return nil
}

// verdict says that a window is gone as its pipes do.
func (c *layer) verdict(err error) error {
	if c.closed.Load() || errors.Is(err, window.ErrFreed) {
		return pipe.ErrPoolClosed
	}
	return err
}
