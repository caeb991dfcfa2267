package verbs

import (
	"context"
	"sync"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A CQ collects completions of the queue pairs that name it.
type CQ struct {
	ctx *Context
	drv driver.CQ

	mu     sync.Mutex
	closed bool
	live   int // queue pairs, counted once for each of their queues
}

// Poll fills wc with up to len(wc) completions and returns how many. It makes
// progress, never blocks and does not allocate. driver.ErrOverrun means that
// completions were lost: close the CQ and its queue pairs.
func (c *CQ) Poll(wc []Completion) (int, error) {
	n, err := c.drv.Poll(wc)
	if n > 0 {
		c.settle(wc[:n])
	}
	if err != nil {
		return n, c.ctx.fail("poll", 0, err)
	}
	return n, nil
}

// settle gives queue slots back and notices queue pairs that broke.
func (c *CQ) settle(wc []Completion) {
	qps := *c.ctx.qps.Load()
	for i := range wc {
		if qp := qps[wc[i].QP]; qp != nil {
			qp.completed(&wc[i])
		}
	}
}

// Wait returns nil when a Poll is worth it, or the cause of ctx's end. Other
// news of the rank's bell may wake it in between: poll, then wait again.
func (c *CQ) Wait(ctx context.Context) error { return c.ctx.fail("wait", 0, c.drv.Wait(ctx)) }

// Arm has the bell rung at the next completion, where the device does so only
// on demand: see driver.Armer. driver.ErrUnsupported means that every
// completion rings anyway.
func (c *CQ) Arm(solicited bool) error {
	if a, ok := c.drv.(driver.Armer); ok {
		return c.ctx.fail("arm", 0, a.Arm(solicited))
	}
	return driver.ErrUnsupported
}

// Close releases the queue and wakes its waiters, or returns an
// [InUseError] while queue pairs complete to it. It is idempotent.
func (c *CQ) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	if c.live > 0 && !c.ctx.closed.Load() {
		return c.ctx.fail("close CQ", 0, &InUseError{Object: "CQ", QPs: c.live})
	}
	c.closed = true
	return c.ctx.fail("close CQ", 0, c.drv.Close())
}

// hold counts a QP that completes into the queue: Close refuses while there is one.
func (c *CQ) hold() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return driver.ErrClosed
	}
	c.live++
	return nil
}

// release counts one queue less that completes here: its queue pair has ended.
func (c *CQ) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live--
}
