package faulty

import (
	"context"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// extraDepth is the room that a CQ has below for completions that the caller
// did not ask for.
const extraDepth = 1024

// cq collects completions from its lanes, one for each queue that completes
// here. A lane keeps its order; between lanes there is none.
type cq struct {
	inner driver.CQ
	dev   *device
	worth func() bool // a Poll, bound once

	below int // requests under way below that will complete there
	room  int // how many of these there may be
	lanes []lane

	ring    wq.Ring[arrival]
	err     error
	closed  bool
	scratch [32]driver.Completion
}

type lane struct {
	qp      *qp
	deliver func() (arrival, bool)
}

// An arrival is a completion that can be polled.
type arrival struct {
	driver.Completion
	owner *qp // the queue pair of a signalled request, else nil
}

func (d *device) newCQ(inner driver.CQ, depth, below int) *cq {
	c := &cq{inner: inner, dev: d, room: max(1, below-depth), ring: wq.NewRing[arrival](depth)}
	c.worth = c.worthPolling
	d.lock()
	d.cqs = append(d.cqs, c)
	d.unlock()
	return c
}

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

// Arm is the wrapped queue's: what it rings for is taken in by a Poll here.
func (c *cq) Arm(solicited bool) error {
	if a, ok := c.inner.(driver.Armer); ok {
		return a.Arm(solicited)
	}
	return driver.ErrUnsupported
}

// Wait sleeps on the rank's bell, which the wrapped provider rings when
// something completes and the pump when a hold is over.
func (c *cq) Wait(ctx context.Context) error { return c.dev.bell.Wait(ctx, c.worth) }

func (c *cq) worthPolling() bool {
	d := c.dev
	d.lock()
	defer d.unlock()
	d.progress()
	return c.closed || d.closed || !d.stalled() && (c.ring.Len() > 0 || c.err != nil)
}

// pull takes what completed below.
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

// collect takes completions that are due from the lanes, one each in turn.
func (c *cq) collect() {
	for more := len(c.lanes) > 0; more; {
		more = false
		from := 0
		if c.dev.plan.Reorder > 0 {
			from = c.dev.shuffle.IntN(len(c.lanes))
		}
		for i := range c.lanes {
			if a, ok := c.lanes[(from+i)%len(c.lanes)].deliver(); ok {
				c.push(a)
				more = true
			}
		}
	}
}

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

// leave removes the lanes of a closed QP.
func (c *cq) leave(q *qp) {
	kept := c.lanes[:0]
	for _, l := range c.lanes {
		if l.qp != q {
			kept = append(kept, l)
		}
	}
	c.lanes = kept
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
