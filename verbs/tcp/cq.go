package tcp

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/verbs/driver"
)

// completionQueue is a ring of completions.
type completionQueue struct {
	dev *device

	mu   sync.Mutex
	ring []driver.Completion
	head int

	count   atomic.Int64 // changed under mu, read without
	overrun atomic.Bool
	closed  atomic.Bool
}

// Poll hands out completions; when there are none yet, it makes progress
// first: it moves what the sockets have to give and what is still combined.
func (c *completionQueue) Poll(wc []driver.Completion) (int, error) {
	if c.count.Load() == 0 || c.dev.dirty.Load() {
		c.dev.poll()
	}
	if c.count.Load() == 0 {
		return 0, c.state()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(wc), int(c.count.Load()))
	for i := range n {
		wc[i] = c.ring[c.head]
		c.ring[c.head].Err = nil
		if c.head++; c.head == len(c.ring) {
			c.head = 0
		}
	}
	c.count.Add(int64(-n))
	return n, c.state()
}

func (c *completionQueue) state() error {
	switch {
	case c.closed.Load() || c.dev.gone.Load():
		return driver.ErrClosed
	case c.overrun.Load():
		return driver.ErrOverrun
	}
	return nil
}

// Wait returns when Poll has something to say.
func (c *completionQueue) Wait(ctx context.Context) error {
	return c.dev.bell.WaitCalling(ctx, func() bool {
		if c.count.Load() > 0 {
			return true
		}
		c.dev.poll()
		return c.count.Load() > 0 || c.state() != nil
	})
}

// Close wakes who waits on the queue. It is idempotent.
func (c *completionQueue) Close() error {
	c.closed.Store(true)
	c.dev.bell.Ring()
	return nil
}

// push queues a completion; whoever called rings the bell later.
func (c *completionQueue) push(wc driver.Completion) {
	c.dev.note()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int(c.count.Load())
	if n == len(c.ring) {
		c.overrun.Store(true)
		return
	}
	c.ring[(c.head+n)%len(c.ring)] = wc
	c.count.Add(1)
}

// purge takes out the completions of a queue pair that is reset.
func (c *completionQueue) purge(qp uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := 0
	for i := range int(c.count.Load()) {
		wc := c.ring[(c.head+i)%len(c.ring)]
		if wc.QP != qp {
			c.ring[(c.head+kept)%len(c.ring)] = wc
			kept++
		}
	}
	c.count.Store(int64(kept))
}
