package loop

import (
	"context"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// cq is a completion queue.
type cq struct {
	wq.Completions
	bell  *wait.Bell
	ready func() bool // Ready, bound once: Wait allocates nothing for it
}

func (c *cq) Wait(ctx context.Context) error { return c.bell.Wait(ctx, c.ready) }

// Close wakes waiters; Poll then returns driver.ErrClosed.
func (c *cq) Close() error {
	c.Completions.Close()
	c.bell.Ring()
	return nil
}
