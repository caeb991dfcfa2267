//go:build linux

package tcp

import (
	"context"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// completionQueue is a queue of completions. Poll and Wait make progress.
type completionQueue struct {
	wq.Completions
	dev *device
}

// Push queues a completion. The caller rings the bell later.
func (c *completionQueue) Push(wc *driver.Completion, life *wq.Life) {
	c.Completions.Push(wc, life)
	c.dev.note() // any goroutine may ring from here on
}

// Poll takes completions. If there are none, it first reads the sockets and sends
// combined frames.
func (c *completionQueue) Poll(wc []driver.Completion) (int, error) {
	if c.Empty() || c.dev.dirty.Load() {
		c.dev.poll()
	}
	if c.Empty() && c.dev.gone.Load() {
		return 0, driver.ErrClosed
	}
	return c.Completions.Poll(wc)
}

// Wait returns when Poll has something to return.
func (c *completionQueue) Wait(ctx context.Context) error {
	return c.dev.bell.WaitCalling(ctx, func() bool {
		if !c.Empty() {
			return true
		}
		c.dev.poll()
		return c.Ready() || c.dev.gone.Load()
	})
}

// Close wakes the waiters. It is idempotent.
func (c *completionQueue) Close() error {
	c.Completions.Close()
	c.dev.bell.Ring()
	return nil
}
