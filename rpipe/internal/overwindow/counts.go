package overwindow

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

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
