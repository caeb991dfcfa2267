package faulty

import (
	"context"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// extraDepth is the room of a CQ below for completions of unsignaled requests.
const extraDepth = 1024

// cq collects completions from its sources, one for each queue that completes
// here. A source keeps its order; between sources there is none.
type cq struct {
	inner driver.CQ
	dev   *device
	worth func() bool // worthPolling, bound once

	below   int // requests under way below that will complete to inner
	room    int // the limit of below
	sources []source

	ring    wq.Ring[arrival]
	err     error
	closed  bool
	scratch [32]driver.Completion
}

// A source is a QP that completes into a CQ. deliver returns its next completion, if one is due.
type source struct {
	qp      *qp
	deliver func() (arrival, bool)
}

// An arrival is a completion that can be polled.
type arrival struct {
	driver.Completion
	owner *qp // the queue pair of a signaled request, else nil
}

// newCQ enters a queue of depth completions around inner, which holds below.
func (d *device) newCQ(inner driver.CQ, depth, below int) *cq {
	c := &cq{inner: inner, dev: d, room: max(1, below-depth), ring: wq.NewRing[arrival](depth)}
	c.worth = c.worthPolling
	d.lock()
	d.cqs = append(d.cqs, c)
	d.unlock()
	return c
}

// Poll implements driver.CQ. It first drives all QPs of the device.
func (c *cq) Poll(wc []driver.Completion) (int, error) {
	d := c.dev
	d.lock()
	defer d.unlock()
	d.polls++
	d.progress()
	if c.closed || d.closed {
		return 0, driver.ErrClosed
	}
	if d.stalled() {
		return 0, nil
	}
	if c.err != nil {
		return 0, c.err
	}
	n := min(len(wc), c.ring.Len())
	for i := range n {
		a := c.ring.First()
		if wc[i] = a.Completion; a.owner != nil {
			a.owner.owed--
		}
		*a = arrival{}
		c.ring.Pop(1)
	}
	return n, nil
}

// Arm arms the wrapped queue: a Poll here takes in the completion for which it
// rings.
func (c *cq) Arm(solicited bool) error {
	if a, ok := c.inner.(driver.Armer); ok {
		return a.Arm(solicited)
	}
	return driver.ErrUnsupported
}

// Wait sleeps on the rank's bell. The wrapped provider rings it at a
// completion, the pump at the end of a hold.
func (c *cq) Wait(ctx context.Context) error { return c.dev.bell.Wait(ctx, c.worth) }

// worthPolling makes progress, and reports whether Poll has something to return.
func (c *cq) worthPolling() bool {
	d := c.dev
	d.lock()
	defer d.unlock()
	d.progress()
	return c.closed || d.closed || !d.stalled() && (c.ring.Len() > 0 || c.err != nil)
}

// pull takes the completions from below.
func (c *cq) pull() {
	for c.err == nil {
		n, err := c.inner.Poll(c.scratch[:])
		for i := range c.scratch[:n] {
			c.dev.completed(c.scratch[i])
		}
		if err != nil {
			c.err = err
			c.dev.moved = true
		}
		if n < len(c.scratch) {
			return
		}
	}
}

// collect takes due completions from the sources, one each in turn.
func (c *cq) collect() {
	for more := len(c.sources) > 0; more; {
		more = false
		from := 0
		if c.dev.plan.Reorder > 0 {
			from = c.dev.shuffle.IntN(len(c.sources))
		}
		for _, part := range [2][]source{c.sources[from:], c.sources[:from]} {
			for i := range part {
				if a, ok := part[i].deliver(); ok {
					c.push(a)
					more = true
				}
			}
		}
	}
}

// push queues a completion, or has the queue overrun.
func (c *cq) push(a arrival) {
	c.dev.moved = true
	if c.ring.Room() == 0 {
		c.err = driver.ErrOverrun
		return
	}
	*c.ring.Push() = a
}

// purge removes the completions of a QP that was reset.
func (c *cq) purge(num uint32) {
	c.ring.Retain(func(a *arrival) bool { return a.QP != num })
}

// leave removes the sources of a closed QP.
func (c *cq) leave(q *qp) {
	kept := c.sources[:0]
	for _, l := range c.sources {
		if l.qp != q {
			kept = append(kept, l)
		}
	}
	c.sources = kept
}

// Close wakes the waiters; Poll then returns driver.ErrClosed.
func (c *cq) Close() error {
	c.dev.lock()
	again := c.closed
	c.closed = true
	c.dev.dropCQ(c)
	c.dev.unlock()
	if again {
		return nil
	}
	defer c.dev.bell.Ring()
	return c.inner.Close()
}
