package window

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// A gate lets one goroutine of this rank at a time wait for a target's lock, in the order in
// which they come. So a rank has one entry at most in the lock's queue.
type gate struct {
	mu   sync.Mutex
	busy bool
	line []*atomic.Bool // true: the goroutine has the gate

	// The goroutine that has the gate guards the rest.
	granted uint64 // locks that deciders gave to this rank, see grants in lock_queue.go
	doubt   error  // a grant may arrive late: no further goroutine may wait
}

// gate returns the gate of a target. The first use makes it.
func (c *core) gate(target int) *gate {
	place := &c.gates[target]
	if g := place.Load(); g != nil {
		return g
	}
	place.CompareAndSwap(nil, new(gate))
	return place.Load()
}

// enter waits for the gate. It returns ErrFreed if Free has begun.
func (g *gate) enter(ctx context.Context, c *core) error {
	g.mu.Lock()
	if !g.busy {
		g.busy = true
		g.mu.Unlock()
	} else {
		mine := new(atomic.Bool)
		g.line = append(g.line, mine)
		g.mu.Unlock()
		if err := c.team.Await(ctx, func() bool { return mine.Load() || c.freed.Load() }); !mine.Load() && g.quit(mine) {
			if err == nil {
				err = ErrFreed
			}
			return err
		}
	}
	if c.freed.Load() { // Free waits for goroutines that were here before
		g.leave(c)
		return ErrFreed
	}
	return nil
}

// quit takes a goroutine out of the line. It returns false if the goroutine has the gate.
func (g *gate) quit(mine *atomic.Bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.line, mine)
	if i < 0 {
		return false
	}
	g.line = slices.Delete(g.line, i, i+1)
	return true
}

// leave gives the gate to the next goroutine in line.
func (g *gate) leave(c *core) {
	g.mu.Lock()
	if len(g.line) > 0 {
		g.line[0].Store(true)
		g.line = slices.Delete(g.line, 0, 1)
	} else {
		g.busy = false
	}
	g.mu.Unlock()
	c.team.Bell().Ring()
}

// close returns once no goroutine has the gate. It stays closed. The window has ended.
func (g *gate) close(ctx context.Context, c *core) error {
	closed := func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.busy {
			return false
		}
		g.busy = true
		return true
	}
	return c.team.Await(ctx, closed)
}
