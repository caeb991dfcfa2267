package farheap

import (
	"context"

	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/rpipe/internal/turn"
)

// A gate lets one goroutine at a time make a call that waits, until the gate is shut. Then
// the call inside ends with its context, and no other one enters.
type gate struct {
	turn  turn.Turn
	open  context.Context
	close context.CancelFunc
}

// newGate returns an open gate.
func newGate() gate {
	g := gate{turn: turn.New()}
	g.open, g.close = context.WithCancel(context.Background())
	return g
}

// pass runs do with a context that ends with ctx or when the gate is shut.
func (g *gate) pass(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(g.open, func() { cancel(pipe.ErrSelfClosed) })()
	if err := g.turn.Take(ctx); err != nil {
		return err
	}
	defer g.turn.Give()
	return do(ctx)
}

// shut returns when no call is inside any more.
func (g *gate) shut() {
	g.close()
	_ = g.turn.Take(context.Background()) // for good
}
