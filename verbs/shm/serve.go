//go:build linux

package shm

import "time"

// gracePeriod is the time that a request waits for a poll of the program before
// serve starts. A program that polls in time never pays for the goroutine of
// serve.
const gracePeriod = time.Millisecond

// stalled records whether requests wait for the peer, and has the peer ring. Precondition: mu is held.
func (q *QP) stalled(waits bool) {
	if q.wanting == waits {
		return
	}
	q.wanting = waits
	if !waits {
		q.own.want.Store(0)
		q.ctx.stalled.Add(-1)
		return
	}
	q.own.want.Store(1)
	if q.ctx.stalled.Add(1) == 1 {
		q.ctx.grace.Reset(gracePeriod)
	}
}

// startServing runs in the timer's goroutine.
func (c *Context) startServing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepServing()
}

// keepServing has the goroutine of serve run. Precondition: mu is held.
func (c *Context) keepServing() {
	if !c.closed && !c.serving {
		c.serving = true
		c.helpers.Go(c.serve)
	}
}

// serve executes waiting requests, and those of peers for heap memory, while the program does
// not poll, as a NIC would. It ends once none waits and peers reach no heap memory.
func (c *Context) serve() {
	idle := func() bool { return c.stalled.Load() == 0 && c.heaps.count.Load() == 0 }
	for c.life.Err() == nil {
		_ = c.bell.Wait(c.life, func() bool { // the loop looks at life
			if c.doors.summary.Load() != 0 {
				c.progress()
			}
			return idle()
		})
		c.mu.Lock()
		if idle() {
			c.serving = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}
