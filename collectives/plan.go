package collectives

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/runtime"
)

// A Planned call was checked once and is made as often as it is run or started,
// with what its slices hold then. Its methods are called by one goroutine at a
// time.
type Planned struct {
	group *group
	what  *described
	c     Call

	mu    sync.Mutex
	under *Request // in progress
	freed bool
}

// errUnplanned is the error of a Planned that Plan did not return.
var errUnplanned = fmt.Errorf("an empty Planned, make it by Plan: %w", errors.ErrUnsupported)

// Plan prepares a call. Members that make it together need not all have planned it. Plan
// does not wait. It returns the cause of ctx's end if ctx has ended, and the error of the
// team if that is not whole. Kind: local.
func Plan(ctx context.Context, t *runtime.Team, c Call) (*Planned, error) {
	ctx = wait.Context(ctx)
	c.own()
	g, d, err := admit(t, &c)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, g.fail(&d.call, context.Cause(ctx))
	}
	if err := g.team.Err(); err != nil {
		return nil, g.fail(&d.call, err)
	}
	return &Planned{group: g, what: d, c: c}, nil
}

// Run makes the call. Kind: as that of the call.
func (p *Planned) Run(ctx context.Context) error {
	if err := p.begin(nil); err != nil {
		return p.fail(err)
	}
	return p.group.run(ctx, p.what, &p.c)
}

// Start starts the call. [ErrBusy]: it was started before and has not ended. Kind:
// as [Start]'s.
func (p *Planned) Start(ctx context.Context) (*Request, error) {
	r := &Request{done: make(chan struct{})}
	if err := p.begin(r); err != nil {
		return nil, p.fail(err)
	}
	if err := p.group.start(ctx, &p.what.call, &p.c, r); err != nil {
		r.end(err)
		return nil, err
	}
	return r, nil
}

// fail adds the plan's call to an error.
func (p *Planned) fail(err error) error {
	if p == nil || p.group == nil {
		return &OpError{Op: "Planned", Rank: -1, Err: err}
	}
	return p.group.fail(&p.what.call, err)
}

// begin makes r the request in progress; nil is none.
func (p *Planned) begin(r *Request) error {
	if p == nil || p.group == nil {
		return errUnplanned
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.freed {
		return ErrFreed
	}
	if p.under != nil {
		if ended, _ := p.under.Test(); !ended {
			return ErrBusy
		}
	}
	p.under = r
	return nil
}

// Free waits until a started call has ended, and releases the call's slices. The second
// Free does nothing. Kind: local.
func (p *Planned) Free(ctx context.Context) error {
	ctx = wait.Context(ctx)
	if p == nil || p.group == nil {
		return p.fail(errUnplanned)
	}
	p.mu.Lock()
	p.freed = true
	under := p.under
	p.mu.Unlock()
	if under != nil {
		if err := under.Wait(ctx); err != nil {
			return err
		}
	}
	p.c = Call{}
	return nil
}
