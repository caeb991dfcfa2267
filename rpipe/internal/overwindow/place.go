package overwindow

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// take returns a free place.
func (c *layer) take() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return 0, pipe.ErrPoolClosed
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
func (c *layer) give(place int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return nil
	}
	c.entry(place).Store(0)
	data := c.w.Local()[c.dataOf(place):]
	clear(data[:c.room-c.Heap]) // old bytes in a heap mean nothing
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
	place, err := c.take()
	if err != nil {
		return pipe.Stage{}, err
	}
	return pipe.Stage{Mem: c.w.Local()[c.dataOf(place):][:n], Release: func(bool) error { return c.give(place) }}, nil
}

// counts are notification slots of a pool, which has as many as it has
// places: each group has a pipe.
type counts struct {
	c     *layer
	slots []int // by group
}

// Counts implements pipe.Layer.
func (c *layer) Counts(_ context.Context, groups int) (pipe.Counts, error) {
	slots, err := c.takeCounts(groups)
	return &counts{c, slots}, err
}

// Word implements pipe.Counts.
func (y *counts) Word(group int) uint64 { return y.c.value(y.slots[group : group+1]) }

// Watch implements pipe.Counts.
func (y *counts) Watch(list []int) []int { return append(list, y.slots...) }

// Counter implements pipe.Counts. A group is the slot of its count.
func (y *counts) Counter(group int) pipe.Counter {
	return pipe.Counter{Number: 1, Group: y.slots[group]}
}

// GiveUp implements pipe.Counts. An addition of a dead rank may still arrive; its slots stay taken.
func (y *counts) GiveUp(orphaned bool) {
	if !orphaned {
		y.c.giveCounts(y.slots)
	}
}

// isCount reports whether a slot is one of a count.
func (c *layer) isCount(slot int) bool { return uint(slot-c.slotsOf(c.Ends)) < uint(c.Ends) }

// takeCounts returns n slots that hold 0.
func (c *layer) takeCounts(n int) ([]int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return nil, pipe.ErrPoolClosed
	}
	slots := make([]int, 0, n)
	for i := 0; i < len(c.counted) && len(slots) < n; i++ {
		if !c.counted[i] {
			slots = append(slots, c.slotsOf(c.Ends)+i)
		}
	}
	if len(slots) < n {
		return nil, fmt.Errorf("%w: the pool has %d ends, too few for these pipes beside those that are open; give OverWindow more",
			runtime.ErrExhausted, c.Ends)
	}
	for _, slot := range slots {
		c.counted[slot-c.slotsOf(c.Ends)] = true
	}
	return slots, nil
}

// giveCounts takes slots back as they were in the beginning.
func (c *layer) giveCounts(slots []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, slot := range slots {
		if _, err := c.w.ResetNotify(slot, 0); err != nil {
			return // the pool is closed
		}
		c.counted[slot-c.slotsOf(c.Ends)] = false
	}
}
