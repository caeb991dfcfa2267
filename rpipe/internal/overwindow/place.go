package overwindow

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// value loads a slot; 0 once the pool is closed.
func (c *layer) value(slot int) uint64 {
	value, _ := c.w.Slot(slot)
	return value
}

// takePlace returns a free place.
func (c *layer) takePlace() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return 0, pipe.ErrPoolClosed
	}
	place := slices.Index(c.taken, false)
	if place < 0 {
		return 0, fmt.Errorf("%w: too many of the pool's %d ends are open, or wait for the other end to close; give OverWindow more",
			runtime.ErrExhausted, c.ends)
	}
	c.taken[place] = true
	return place, nil
}

// givePlace takes a place back as it was in the beginning.
func (c *layer) givePlace(place int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return nil
	}
	c.entry(place).Store(0)
	data := c.w.Local()[c.dataOf(place):]
	clear(data[:c.room-c.heap]) // old bytes in a heap mean nothing
	for slot := c.slotsOf(place); slot < c.slotsOf(place+1); slot++ {
		if _, err := c.w.ResetNotify(slot, 0); err != nil {
			return err
		}
	}
	c.taken[place] = false
	return nil
}

// entry is a place's word in this rank's directory.
func (c *layer) entry(place int) *atomic.Uint64 { return atomics.Word64(c.w.Local()[8*place:]) }

// Stage implements pipe.Layer: a place where no end lies.
func (c *layer) Stage(_ context.Context, _ string, n int) (pipe.Stage, error) {
	if n > c.room {
		return pipe.Stage{}, fmt.Errorf("%w: %d bytes, where a place of the pool has %d; give OverWindow the pipes' options", pipe.ErrTooLarge, n, c.room)
	}
	place, err := c.takePlace()
	if err != nil {
		return pipe.Stage{}, err
	}
	return pipe.Stage{Mem: c.w.Local()[c.dataOf(place):][:n], Release: func(bool) error { return c.givePlace(place) }}, nil
}
