package collectives

import (
	"context"
	"sync"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/runtime"
)

// A Planned call was checked once and is made as often as it is run or started,
// with what its slices hold then. Its methods are called by one goroutine at a
// time.
type Planned struct {
	group *group
	call  fabric.Call
	c     Call

	mu    sync.Mutex
	under *Request // that was started
	freed bool
}

// Plan prepares a call. Members that make it together need not all have planned
// it. Kind: local.
func Plan(_ context.Context, t *runtime.Team, c Call) (*Planned, error) {
	g, call, err := admit(t, &c)
	if err != nil {
		return nil, err
	}
	return &Planned{group: g, call: call, c: c}, nil
}

// Run makes the call. Kind: as that of the call.
func (p *Planned) Run(ctx context.Context) error {
	if err := p.begin(nil); err != nil {
		return p.group.fail(&p.call, err)
	}
	return p.group.run(ctx, &p.call, &p.c)
}

// Start starts the call. [ErrBusy]: it was started before and has not ended. Kind:
// as [Start]'s.
func (p *Planned) Start(ctx context.Context) (*Request, error) {
	r := &Request{done: make(chan struct{})}
	if err := p.begin(r); err != nil {
		return nil, p.group.fail(&p.call, err)
	}
	if err := p.group.start(ctx, p.call, &p.c, r); err != nil {
		r.end(err)
		return nil, err
	}
	return r, nil
}

// begin makes r the request that is under way; nil is none.
func (p *Planned) begin(r *Request) error {
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

// Free waits until what was started has ended, and lets go of the call's slices.
// The second call does nothing. Kind: local.
func (p *Planned) Free(ctx context.Context) error {
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
