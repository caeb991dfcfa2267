package pipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/window"
)

// slot loads one of this rank's slots.
func (c *Pool) slot(i int) uint64 {
	_, value, _, _ := c.w.TestNotify(window.Until{Slots: []int{i}, Condition: window.AtLeast})
	return value
}

// value loads a slot, given as a slice that is there anyway.
func (c *Pool) value(slot []int) uint64 {
	// The condition always holds: nothing is waited for, and nothing polled.
	_, value, _, _ := c.w.TestNotify(window.Until{Slots: slot, Condition: window.AtLeast})
	return value
}

// Enlist begins a wait, which looks at the bell and at the slots that the caller
// puts behind it. dismiss ends it.
func (c *Pool) Enlist() *window.Until {
	c.waiting.Add(1) // pairs with the load in ring: one of the two sees the other
	u := c.untils.Get().(*window.Until)
	u.Slots = append(u.Slots[:0], bellSlot)
	return u
}

// Dismiss ends a wait that Enlist has begun.
func (c *Pool) Dismiss(u *window.Until) {
	c.untils.Put(u)
	c.waiting.Add(-1)
}

// Sleep is done once ready is true; otherwise it waits until one of the slots is not
// what it was when ready was asked.
func (c *Pool) Sleep(ctx context.Context, u *window.Until, ready func() bool) (done bool, err error) {
	u.Values = u.Values[:0]
	for i := range u.Slots {
		u.Values = append(u.Values, c.value(u.Slots[i:i+1]))
	}
	if ready() {
		return true, nil
	}
	_, _, err = c.w.WaitNotify(ctx, *u)
	if err != nil && ready() { // notifications that have arrived count
		return true, nil
	}
	return false, c.verdict(err)
}

// Ring has all waits of this rank look again.
func (c *Pool) Ring() {
	if c.waiting.Load() == 0 {
		return
	}
	// Puts at one's own rank fail with the job alone, and then waits end anyway.
	_ = c.w.PutNotify(context.Background(), c.team.Rank, 0, nil, window.Signal{Slot: bellSlot, Add: true, Value: 1})
}

// verdict says that a window is gone as its pipes do.
func (c *Pool) verdict(err error) error {
	if c.closed.Load() || errors.Is(err, window.ErrFreed) {
		return errPoolClosed
	}
	return err
}
