package window

import (
	"context"
	"time"

	"github.com/gopgas/gopgas/internal/fabric"
)

// settleTime bounds how long a call whose context has ended waits for its last
// atomics. A target answers them at once unless it is stopped.
const settleTime = 100 * time.Millisecond

// within runs do, whose atomics at the target must not be given up half-way. If
// ctx ends first, the call returns the cause while do goes on; late then undoes
// the work of do. Free waits for both: do may have promised the lock to a rank that it has yet to
// tell. Where the target is mapped do cannot take long, and within simply runs it.
func (c *core) within(ctx context.Context, r *fabric.Remote, do func() error, late func()) error {
	if r.Mem != nil {
		return do()
	}
	result, left := make(chan error), make(chan struct{})
	c.locks.inside.Add(1)
	go func() {
		defer c.team.Bell().Ring()
		defer c.locks.inside.Add(-1)
		err := do()
		select {
		case result <- err:
		case <-left:
			if err == nil {
				late()
			}
		}
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-result:
		return err
	case <-time.After(settleTime):
		close(left)
		return context.Cause(ctx)
	}
}
