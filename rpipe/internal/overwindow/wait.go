package overwindow

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/window"
)

// value loads a slot, given as a slice that is there anyway.
func (c *layer) value(slot []int) uint64 {
	// The condition always holds: nothing is waited for, and nothing polled.
	_, value, _, _ := c.w.TestNotify(window.Until{Slots: slot, Condition: window.AtLeast})
	return value
}

// wait returns nil once ready is true. It looks again when the bell rings, or one of the
// watched slots is not what it was when ready was asked.
func (c *layer) wait(ctx context.Context, watch func(list []int) []int, ready func() bool) error {
	c.waiting.Add(1) // pairs with the load in Ring: one of the two sees the other
	defer c.waiting.Add(-1)
	u := c.untils.Get().(*window.Until)
	defer c.untils.Put(u)
	for !ready() {
		u.Slots, u.Values = watch(append(u.Slots[:0], bellSlot)), u.Values[:0]
		for i := range u.Slots {
			u.Values = append(u.Values, c.value(u.Slots[i:i+1]))
		}
		if ready() {
			return nil
		}
		if _, _, err := c.w.WaitNotify(ctx, *u); err != nil {
			if ready() { // notifications that have arrived count
				return nil
			}
			return c.verdict(err)
		}
	}
	return nil
}

// Ring implements pipe.Layer.
func (c *layer) Ring() {
	if c.waiting.Load() == 0 {
		return
	}
	// Puts at one's own rank fail with the job alone, and then waits end anyway.
	_ = c.w.PutNotify(context.Background(), c.team.Rank, 0, nil, window.Signal{Slot: bellSlot, Add: true, Value: 1})
}

// Progress implements pipe.Layer: it polls the window by a test that never succeeds.
func (c *layer) Progress() bool {
	_, _, _, _ = c.w.TestNotify(window.Until{Slots: []int{bellSlot}, Condition: window.AtLeast, Value: ^uint64(0)})
	return true
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
