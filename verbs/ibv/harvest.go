//go:build ibverbs

package ibv

import "github.com/gopgas/gopgas/verbs/driver"

// A waiter or the watchdog finds completions without a Poll. A ring keeps them for the
// next Poll. Precondition of all functions here: mu is held.

// harvest takes completions from the device for a later Poll, and reports
// whether the device had no more.
func (c *completionQueue) harvest() (all bool) {
	for {
		space := c.fresh[:min(batch, c.found.Room())]
		if len(space) == 0 {
			return false
		}
		n := c.fetch(space)
		for i := range n {
			*c.found.Push() = space[i]
			space[i].Err = nil
		}
		if n < len(space) {
			return true
		}
	}
}

// purge removes the completions of a queue pair that is reset or closed, and
// discards stale ones in the device.
func (c *completionQueue) purge(num uint32) {
	c.found.Retain(func(wc *driver.Completion) bool { return wc.QP != num })
	c.harvest()
}
