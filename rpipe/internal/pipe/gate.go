package pipe

import "context"

// A Gate lets one goroutine at a time do something that waits, until it is shut:
// then whoever is inside is called back, and no other one enters.
type Gate struct {
	inside chan struct{} // holds one
	open   context.Context
	close  context.CancelFunc
}

// NewGate returns an open gate.
func NewGate() Gate {
	g := Gate{inside: make(chan struct{}, 1)}
	g.open, g.close = context.WithCancel(context.Background())
	return g
}

// Pass runs do with a context that ends with ctx or when the gate is shut.
func (g *Gate) Pass(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(g.open, func() { cancel(ErrSelfClosed) })()
	select {
	case g.inside <- struct{}{}:
		defer func() { <-g.inside }()
		return do(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Shut returns when no call is inside any more.
func (g *Gate) Shut() {
	g.close()
	g.inside <- struct{}{}
}
