//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import "github.com/gopgas/gopgas/verbs/driver"

var _ driver.Armer = (*completionQueue)(nil)

// These are the completions for which a queue is armed; a higher number
// includes the lower one.
const (
	armedNot uint32 = iota
	armedSolicited
	armedAny
)

// Arm makes the device raise an event at the next completion, or at the next
// solicited or failed one.
func (c *completionQueue) Arm(solicited bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.state(); err != nil {
		return err
	}
	if solicited {
		return c.arm(armedSolicited)
	}
	return c.arm(armedAny)
}

// armForSleeper arms the queue if a goroutine is about to sleep on the bell,
// and reports whether it did. The caller then polls again: completions from
// before raise no event.
func (c *completionQueue) armForSleeper() bool {
	if c.cq == nil || c.armed.Load() == armedAny || !c.dev.bell.Waiting() {
		return false
	}
	return c.arm(armedAny) == nil
}

// arm has the device raise an event at the next completion, unless it will already. The caller
// polls once more afterwards: a completion that came before raises no event.
func (c *completionQueue) arm(want uint32) error {
	if c.armed.Load() >= want {
		return nil
	}
	c.armed.Store(want) // before the device can raise the event, which resets it
	if rc := C.gopgas_arm(c.cq, C.int(armedAny-want)); rc != 0 {
		c.armed.Store(armedNot)
		return wrap(errnoError(rc), "arming a completion queue")
	}
	return nil
}
