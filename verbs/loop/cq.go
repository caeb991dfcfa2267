package loop

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// cq is a ring of completions.
type cq struct {
	bell  *wait.Bell
	ready func() bool // worthPolling, bound once: Wait allocates nothing for it
	news  atomic.Int64

	mu      sync.Mutex
	ring    []driver.Completion
	first   int
	count   int
	overrun bool
	closed  bool
}

// push queues a completion. The caller rings the bell, with no lock held.
func (c *cq) push(wc driver.Completion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if c.count == len(c.ring) {
		c.overrun = true
	} else {
		c.ring[(c.first+c.count)%len(c.ring)] = wc
		c.count++
	}
	c.news.Add(1)
}

func (c *cq) Poll(wc []driver.Completion) (int, error) {
	if c.news.Load() == 0 {
		return 0, nil // no lock while there is nothing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return 0, driver.ErrClosed
	case c.overrun:
		return 0, driver.ErrOverrun
	}
	n := min(len(wc), c.count)
	for i := range n {
		wc[i] = c.ring[c.first]
		c.ring[c.first] = driver.Completion{}
		if c.first++; c.first == len(c.ring) {
			c.first = 0
		}
	}
	c.count -= n
	c.news.Add(-int64(n))
	return n, nil
}

func (c *cq) worthPolling() bool { return c.news.Load() != 0 }

func (c *cq) Wait(ctx context.Context) error { return c.bell.Wait(ctx, c.ready) }

// purge removes the completions of a QP that was reset.
func (c *cq) purge(qp uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := 0
	for i := range c.count {
		wc := c.ring[(c.first+i)%len(c.ring)]
		if wc.QP != qp {
			c.ring[(c.first+kept)%len(c.ring)] = wc
			kept++
		}
	}
	c.news.Add(int64(kept - c.count))
	c.count = kept
}

// Close wakes who waits; Poll then says driver.ErrClosed.
func (c *cq) Close() error {
	c.mu.Lock()
	c.closed = true
	c.news.Add(1)
	c.mu.Unlock()
	c.bell.Ring()
	return nil
}
