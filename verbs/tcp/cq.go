package tcp

import (
	"context"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// completionQueue is a queue of completions, and whoever polls it makes progress.
type completionQueue struct {
	wq.Completions
	dev *device
}

// Push queues a completion. The caller rings the bell later.
func (c *completionQueue) Push(wc *driver.Completion, life *wq.Life) {
	c.dev.note()
	c.Completions.Push(wc, life)
}

// Poll takes completions. When there are none yet, it makes progress first: it moves
// what the sockets have to give and what is still combined.
func (c *completionQueue) Poll(wc []driver.Completion) (int, error) {
	if c.Empty() || c.dev.dirty.Load() {
		c.dev.poll()
	}
	if c.Empty() && c.dev.gone.Load() {
		return 0, driver.ErrClosed
	}
	return c.Completions.Poll(wc)
}

// Wait returns when Poll has something to say.
func (c *completionQueue) Wait(ctx context.Context) error {
	return c.dev.bell.WaitCalling(ctx, func() bool {
		if !c.Empty() {
			return true
		}
		c.dev.poll()
		return c.Ready() || c.dev.gone.Load()
	})
}

// Close wakes who waits on the queue. It is idempotent.
func (c *completionQueue) Close() error {
	c.Completions.Close()
	c.dev.bell.Ring()
	return nil
}
