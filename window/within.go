package window

import (
	"context"
	"time"

	"github.com/gopgas/gopgas/internal/fabric"
)

// settleTime is how long a call whose context has ended waits for its last
// atomics, which are answered at once unless the target is stopped.
const settleTime = 100 * time.Millisecond

// within runs do, whose atomics at the target must not be given up half-way,
// for a caller whose context may end all the same: the call then returns the
// cause while do goes on, and late undoes what do achieves after that. Where
// the target is mapped nothing can take long, and do simply runs.
func (c *core) within(ctx context.Context, r *fabric.Remote, do func() error, late func()) error {
	if r.Mem != nil {
		return do()
	}
	result, left := make(chan error), make(chan struct{})
	go func() {
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
