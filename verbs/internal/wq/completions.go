package wq

import (
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A CompletionRing is a ring of completions under a lock of its owner's.
type CompletionRing struct{ Ring[driver.Completion] }

// NewCompletionRing returns an empty ring.
func NewCompletionRing(depth int) CompletionRing {
	return CompletionRing{NewRing[driver.Completion](depth)}
}

// Take moves the oldest completions to wc and returns how many.
func (r *CompletionRing) Take(wc []driver.Completion) int {
	n := min(len(wc), r.Len())
	for i := range n {
		p := r.First()
		wc[i] = *p
		p.Err = nil
		r.Pop(1)
	}
	return n
}

// Purge drops the completions of a queue pair that was reset.
func (r *CompletionRing) Purge(qp uint32) {
	r.Retain(func(wc *driver.Completion) bool { return wc.QP != qp })
}

// Completions is a bounded queue of completions that any goroutine may fill and
// empty.
type Completions struct {
	mu      sync.Mutex
	ring    CompletionRing
	count   atomic.Int64 // length of ring; changed under mu, read without
	overrun atomic.Bool
	closed  atomic.Bool
}

// Init makes the queue hold depth completions.
func (c *Completions) Init(depth int) { c.ring = NewCompletionRing(depth) }

// Push queues a completion. The caller rings the bell, with no lock held. A full
// queue loses it, which ends the queue with driver.ErrOverrun.
func (c *Completions) Push(wc driver.Completion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed.Load():
	case c.ring.Room() == 0:
		c.overrun.Store(true)
	default:
		*c.ring.Push() = wc
		c.count.Add(1)
	}
}

// Poll takes completions, without a lock while there are none. An empty queue that
// was overrun or closed returns Err.
func (c *Completions) Poll(wc []driver.Completion) (int, error) {
	if c.count.Load() == 0 {
		return 0, c.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.ring.Take(wc)
	c.count.Add(-int64(n))
	return n, nil
}

// Len returns how many completions can be polled.
func (c *Completions) Len() int { return int(c.count.Load()) }

// Ready reports whether a Poll returns a completion or an error.
func (c *Completions) Ready() bool { return c.count.Load() != 0 || c.Err() != nil }

// Err returns driver.ErrClosed after Close, else driver.ErrOverrun if completions
// were lost, else nil.
func (c *Completions) Err() error {
	switch {
	case c.closed.Load():
		return driver.ErrClosed
	case c.overrun.Load():
		return driver.ErrOverrun
	}
	return nil
}

// Purge drops the completions of a queue pair that was reset.
func (c *Completions) Purge(qp uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ring.Purge(qp)
	c.count.Store(int64(c.ring.Len()))
}

// Close ends the queue. The caller rings the bell.
func (c *Completions) Close() { c.closed.Store(true) }
