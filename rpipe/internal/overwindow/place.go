package overwindow

import (
	"context"
	"fmt"
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

// take returns n free numbers of a list, c.taken or c.counted.
func (c *layer) take(taken []bool, n int) ([]int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return nil, pipe.ErrPoolClosed
	}
	free := make([]int, 0, n)
	for i := 0; i < len(taken) && len(free) < n; i++ {
		if !taken[i] {
			free = append(free, i)
		}
	}
	if len(free) < n {
		return nil, fmt.Errorf("%w: too many of the pool's %d ends are open, or wait for the other end to close; give OverWindow more",
			runtime.ErrExhausted, c.ends)
	}
	for _, i := range free {
		taken[i] = true
	}
	return free, nil
}

// takePlace returns a free place.
func (c *layer) takePlace() (int, error) {
	place, err := c.take(c.taken, 1)
	if err != nil {
		return 0, err
	}
	return place[0], nil
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

// counts are notification slots of a pool, which has as many as it has
// places: each group has a pipe.
type counts struct {
	c       *layer
	numbers []int // by group
}

// Counts implements pipe.Layer.
func (c *layer) Counts(_ context.Context, groups int) (pipe.Counts, error) {
	numbers, err := c.take(c.counted, groups)
	return &counts{c, numbers}, err
}

// slot returns the slot of a group.
func (y *counts) slot(group int) int { return y.c.slotsOf(y.c.ends) + y.numbers[group] }

// Word implements pipe.Counts.
func (y *counts) Word(group int) uint64 { return y.c.value(y.slot(group)) }

// Counter implements pipe.Counts. A group is the slot of its count.
func (y *counts) Counter(group int) pipe.Counter {
	return pipe.Counter{Number: 1, Group: y.slot(group)}
}

// GiveUp implements pipe.Counts. An addition of a dead rank may still arrive; its slots stay taken.
func (y *counts) GiveUp(orphaned bool) {
	if orphaned {
		return
	}
	y.c.mu.Lock()
	defer y.c.mu.Unlock()
	for group, number := range y.numbers {
		if _, err := y.c.w.ResetNotify(y.slot(group), 0); err != nil {
			return // the pool is closed
		}
		y.c.counted[number] = false
	}
}

// isCount reports whether a slot is one of a count.
func (c *layer) isCount(slot int) bool { return uint(slot-c.slotsOf(c.ends)) < uint(c.ends) }
