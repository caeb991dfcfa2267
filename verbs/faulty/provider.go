package faulty

import (
	"context"
	"sync"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Provider adds faults to another provider, and has its name and devices.
type Provider struct {
	inner driver.Provider
	plan  Plan
	wrong error // the error of check

	mu       sync.Mutex
	contexts int
	qps      map[string]*qp // by address, once they are connected
}

// New wraps inner. Open reports a wrong plan.
func New(inner driver.Provider, plan Plan) *Provider {
	p := &Provider{inner: inner, plan: plan, wrong: plan.check(), qps: map[string]*qp{}}
	p.plan.setDefaults()
	return p
}

// Name returns the wrapped provider's name.
func (p *Provider) Name() string { return p.inner.Name() }

// Devices returns the wrapped provider's devices, without the abilities that
// the plan hides.
func (p *Provider) Devices(ctx context.Context) ([]driver.DeviceInfo, error) {
	devices, err := p.inner.Devices(ctx)
	for i := range devices {
		p.plan.hide(&devices[i])
	}
	return devices, err
}

// Open opens a device of the wrapped provider.
//
// Errors: driver.ErrInvalid for a wrong plan, and the wrapped provider's.
func (p *Provider) Open(ctx context.Context, name string, opts driver.Options) (driver.Context, error) {
	if p.wrong != nil {
		return nil, p.wrong
	}
	if p.plan.passive() {
		return p.inner.Open(ctx, name, opts)
	}
	if opts.Bell == nil {
		opts.Bell = wait.NewLocal()
	}
	d := newDevice(p, opts)
	opts.OnEvent = d.observe
	inner, err := p.inner.Open(ctx, name, opts)
	if err != nil {
		return nil, err
	}
	d.inner = inner
	p.mu.Lock()
	p.contexts++
	d.number = p.contexts
	p.mu.Unlock()
	d.shuffle = p.plan.dice(d.number, 0, streamShuffle)
	go d.pump()
	return d, nil
}

// connected registers q by its address, for cuts that reach the peer.
func (p *Provider) connected(q *qp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.qps[string(q.QP.Address())] = q
}

// closed forgets a queue pair, by which its peer finds it.
func (p *Provider) closed(q *qp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.qps, string(q.QP.Address()))
}

// find returns the queue pair of an address, nil if another process has it.
func (p *Provider) find(address string) *qp {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.qps[address]
}
