package collectives

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/runtime"
)

// A Request is a call that was started. Its methods may be called from any
// goroutine. It need not be waited for: the call goes on by itself, and the team's
// later calls come behind it.
type Request struct {
	done chan struct{} // closed at the end
	err  error         // set before that
	here atomic.Pointer[here]
}

// A here says how a Wait may run the call.
type here struct {
	calls     team.Stream
	key       team.Key
	ended     <-chan struct{} // of the context of the call
	byProgram bool            // the caller of Wait could recover from a panic of the call's operator
}

// errUnstarted is the error of a Request that Start did not return.
var errUnstarted = fmt.Errorf("an empty Request, make it by Start: %w", errors.ErrUnsupported)

// Start starts a call, which makes progress while the program computes. On a rank with one
// core it begins 50 microseconds later, or when a goroutine waits for it. The calls of a
// team run one at a time, in the order of their starts, which is the same at all
// members. A blocking call comes behind those started before. The call's slices belong to
// it until it has ended. When ctx ends first, it ends early, and the team is broken.
// Kind: collective; does not wait.
func Start(ctx context.Context, t *runtime.Team, c Call) (*Request, error) {
	c.own()
	g, d, err := admit(t, &c)
	if err != nil {
		return nil, err
	}
	r := &Request{done: make(chan struct{})}
	if err := g.start(ctx, &d.call, &c, r); err != nil {
		return nil, err
	}
	return r, nil
}

// start starts an admitted call. r ends with the call.
func (g *group) start(ctx context.Context, call *team.Call, c *Call, r *Request) error {
	ctx = wait.Context(ctx)
	key, err := g.team.Calls.Start(ctx, call,
		func(ctx context.Context, key team.Key) error { return g.perform(ctx, key, call, c) },
		func(err error) { r.end(g.fail(call, err)) })
	if err == nil {
		r.here.Store(&here{g.team.Calls, key, ctx.Done(), c.byProgram})
	}
	return g.fail(call, err)
}

// end ends the request with err. The goroutine that runs the call calls it once.
func (r *Request) end(err error) {
	r.err = err
	close(r.done)
}

// Wait waits for the end of the call and returns its error. If ctx ends first, Wait
// returns and the call goes on. A Wait with the context of Start runs the call itself where
// the call has not begun. Kind: local.
func (r *Request) Wait(ctx context.Context) error {
	ctx = wait.Context(ctx)
	if ended, err := r.Test(); ended {
		return err
	}
	if h := r.here.Load(); h != nil {
		h.forward(ctx)
	}
	if ended, err := r.Test(); ended {
		return err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Test reports whether the call has ended, and its error. It only looks and makes no
// progress. A program with nothing else to do should call Wait, which leaves the core
// to the goroutines that do the work. Kind: local.
func (r *Request) Test() (ended bool, err error) {
	if r == nil || r.done == nil {
		return true, errUnstarted
	}
	select {
	case <-r.done:
		return true, r.err
	default:
		return false, nil
	}
}

// Done returns a channel that is closed when the call has ended, for select. Kind:
// local.
func (r *Request) Done() <-chan struct{} {
	if r == nil {
		return nil
	}
	if h := r.here.Load(); h != nil {
		h.calls.Hurry()
	}
	return r.done
}

// forward runs the call for a Wait with ctx, or has the team begin it.
func (h *here) forward(ctx context.Context) {
	if h.ended == ctx.Done() && !h.byProgram {
		h.calls.RunHere(h.key)
	} else {
		h.calls.Hurry()
	}
}
