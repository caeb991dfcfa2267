//go:build ibverbs

package ibv

import "github.com/gopgas/gopgas/verbs/driver"

// What is found by someone who does not poll, such as a waiter or the watchdog,
// is kept in a ring for the next Poll. All of this is called with mu held.

// harvest takes completions from the device for a later Poll, and tells
// whether the device had no more.
func (c *completionQueue) harvest() (all bool) {
	for {
		if c.count == len(c.found) && !c.grow() {
			return false
		}
		space := c.space()
		n := c.fetch(space)
		if c.count += n; n < len(space) {
			return true
		}
	}
}

// space is the free part of found behind the completions, up to its end.
func (c *completionQueue) space() []driver.Completion {
	end := c.first + c.count
	if end < len(c.found) {
		return c.found[end:]
	}
	return c.found[end-len(c.found) : c.first]
}

// grow makes room for as many completions as the device itself holds.
func (c *completionQueue) grow() bool {
	if len(c.found) == c.depth {
		return false
	}
	larger := make([]driver.Completion, min(2*len(c.found), c.depth))
	n := copy(larger, c.found[c.first:])
	copy(larger[n:], c.found[:c.first])
	c.found, c.first = larger, 0
	return true
}

// purge takes out the completions of a queue pair that is reset or closed, and
// has the device's stale ones thrown away.
func (c *completionQueue) purge(num uint32) {
	kept := 0
	for i := range c.count {
		if wc := c.found[(c.first+i)%len(c.found)]; wc.QP != num {
			c.found[(c.first+kept)%len(c.found)] = wc
			kept++
		}
	}
	c.count = kept
	c.harvest()
}
