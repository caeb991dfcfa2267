//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// completionQueue is the device's queue behind a ring of completions that a waiter
// or the watchdog found.
type completionQueue struct {
	dev  *device
	id   uint64
	look func() bool // ready, made once

	armed    atomic.Uint32 // the completions for which the device raises an event
	flushing atomic.Bool   // a queue pair has requests to flush that the device does not hold
	overrun  atomic.Bool

	mu    sync.Mutex
	cq    *C.struct_ibv_cq // nil once closed
	qps   map[uint32]*qp   // that complete to this queue
	last  *qp              // the one with the latest completion, or nil
	raw   [batch]flatCompletion
	found wq.Ring[driver.Completion]
	fresh [batch]driver.Completion // on the way from raw to found
}

// newCompletionQueue returns the provider's side of a completion queue of the device.
func newCompletionQueue(d *device, id uint64, cq *C.struct_ibv_cq, depth int) *completionQueue {
	c := &completionQueue{dev: d, id: id, cq: cq, qps: map[uint32]*qp{}, found: wq.NewRing[driver.Completion](depth)}
	c.look = c.ready
	return c
}

// Poll returns completions. If there is none and a goroutine is about to sleep on the
// bell, Poll arms the device.
func (c *completionQueue) Poll(wc []driver.Completion) (int, error) {
	c.mu.Lock()
	n := c.fill(wc)
	if n == 0 && len(wc) > 0 && c.armForSleeper() {
		n = c.fill(wc)
	}
	err := c.state()
	c.mu.Unlock()
	if n > 0 {
		c.dev.bell.Ring()
	}
	return n, err
}

// state returns why the queue yields no completions any more, nil while it does.
func (c *completionQueue) state() error {
	switch {
	case c.cq == nil || c.dev.gone.Load():
		return driver.ErrClosed
	case c.overrun.Load():
		return driver.ErrOverrun
	}
	return nil
}

// fill takes the completions found before, then polls the device.
func (c *completionQueue) fill(wc []driver.Completion) int {
	n := min(len(wc), c.found.Len())
	for i := range n {
		p := c.found.First()
		wc[i] = *p
		p.Err = nil
		c.found.Pop(1)
	}
	return n + c.fetch(wc[n:])
}

// fetch polls the device, and flushes requests that the device does not hold.
func (c *completionQueue) fetch(wc []driver.Completion) (n int) {
	for c.cq != nil && n < len(wc) {
		want := min(len(wc)-n, batch)
		got := pollCQ(c.cq, c.raw[:want])
		for i := range max(0, got) {
			if c.settle(&c.raw[i], &wc[n]) {
				n++
			}
		}
		if got < want {
			break
		}
	}
	if c.flushing.Load() {
		n += c.flush(wc[n:])
	}
	return n
}

// settle turns a device's completion into a driver's, and reports whether there is one:
// the queue pair may be closed.
func (c *completionQueue) settle(raw *flatCompletion, wc *driver.Completion) bool {
	q := c.last
	if q == nil || q.num != uint32(raw.qp) {
		if q = c.qps[uint32(raw.qp)]; q == nil {
			return false
		}
		c.last = q
	}
	return q.settle(raw, wc)
}

// flush adds completions of requests in ERR, for which the device has none. The queue stays marked
// while some are left.
func (c *completionQueue) flush(wc []driver.Completion) (n int) {
	c.flushing.Store(false)
	for _, q := range c.qps {
		got, more := q.flush(c, wc[n:])
		if n += got; more {
			c.flushing.Store(true)
		}
	}
	return n
}

// flushSoon makes the next Poll flush.
func (c *completionQueue) flushSoon() {
	c.flushing.Store(true)
	c.dev.bell.Ring()
}

// Wait returns when Poll has a completion or an error.
func (c *completionQueue) Wait(ctx context.Context) error { return c.dev.bell.Wait(ctx, c.look) }

// ready reports whether a Poll would return at once. If not, it arms the device for a goroutine
// that is about to sleep, and looks again.
func (c *completionQueue) ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.harvest()
	if c.found.Len() == 0 && c.armForSleeper() {
		c.harvest()
	}
	return c.found.Len() > 0 || c.state() != nil
}

// Close wakes the waiters. It is idempotent.
func (c *completionQueue) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cq == nil {
		return nil
	}
	if rc := C.ibv_destroy_cq(c.cq); rc != 0 {
		return wrap(errnoError(rc), "destroying a completion queue")
	}
	c.cq = nil
	c.dev.mu.Lock()
	delete(c.dev.cqs, c.id)
	c.dev.mu.Unlock()
	c.dev.bell.Ring()
	return nil
}

// lockQueues locks both queues, which may be the same, in the order of their
// ids. It returns a function that unlocks them.
func lockQueues(a, b *completionQueue) (unlock func()) {
	if a.id > b.id {
		a, b = b, a
	}
	a.mu.Lock()
	if a == b {
		return a.mu.Unlock
	}
	b.mu.Lock()
	return func() {
		b.mu.Unlock()
		a.mu.Unlock()
	}
}
