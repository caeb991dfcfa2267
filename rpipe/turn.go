package rpipe

import "context"

// A turn is held by one goroutine at a time. Unlike a mutex's, waiting for it
// ends with a context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	if t.try() {
		return nil
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) try() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

func (t turn) give() { <-t }
