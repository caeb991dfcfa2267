package farheap

import (
	"context"

	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A gate lets one goroutine at a time make a call that waits, until the gate is shut. Then
// the call inside ends with its context, and no other one enters.
type gate struct {
	inside chan struct{} // holds one
	open   context.Context
	close  context.CancelFunc
}

// newGate returns an open gate.
func newGate() gate {
	g := gate{inside: make(chan struct{}, 1)}
	g.open, g.close = context.WithCancel(context.Background())
	return g
}

// pass runs do with a context that ends with ctx or when the gate is shut.
func (g *gate) pass(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(g.open, func() { cancel(pipe.ErrSelfClosed) })()
	select {
	case g.inside <- struct{}{}:
		defer func() { <-g.inside }()
		return do(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// shut returns when no call is inside any more.
func (g *gate) shut() {
	g.close()
	g.inside <- struct{}{}
}
