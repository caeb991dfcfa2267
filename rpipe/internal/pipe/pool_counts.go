package pipe

import (
	"fmt"

	"github.com/gopgas/gopgas/runtime"
)

// WindowCounts are notification slots of a pool, which has as many as it has
// places: each group has a pipe.
type WindowCounts struct {
	c     *Pool
	Slots []int // by group
}

func newWindowCounts(c *Pool, groups int) (*WindowCounts, error) {
	slots, err := c.takeCounts(groups)
	return &WindowCounts{c, slots}, err
}

// Word implements Counts.
func (y *WindowCounts) Word(group int) uint64 { return y.c.value(y.Slots[group : group+1]) }

func (y *WindowCounts) counter(group int) counter { return counter{1, y.Slots[group]} }

// giveUp: an addition of a dead rank may still arrive; its slots stay taken.
func (y *WindowCounts) giveUp(orphaned bool) {
	if !orphaned {
		y.c.giveCounts(y.Slots)
	}
}

// counts reports whether a slot is one of a count.
func (c *Pool) counts(slot int) bool { return uint(slot-c.slotsOf(c.Ends)) < uint(c.Ends) }

// takeCounts returns n slots that hold 0.
func (c *Pool) takeCounts(n int) ([]int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return nil, errPoolClosed
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
func (c *Pool) giveCounts(slots []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, slot := range slots {
		if _, err := c.w.ResetNotify(slot, 0); err != nil {
			return // the pool is closed
		}
		c.counted[slot-c.slotsOf(c.Ends)] = false
	}
}
