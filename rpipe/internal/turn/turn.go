// Package turn has a lock whose waiters give up when their context ends.
package turn

import "context"

// A Turn is held by one goroutine at a time. Unlike a mutex's, waiting for it ends with
// a context.
type Turn chan struct{}

// New returns a turn that no goroutine holds.
func New() Turn { return make(Turn, 1) }

// Take waits for the turn. It returns the cause of ctx's end if that comes first.
func (t Turn) Take(ctx context.Context) error {
	if t.Try() {
		return nil
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Try takes the turn if no goroutine holds it.
func (t Turn) Try() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

// Give gives the turn back.
func (t Turn) Give() { <-t }
