package trace

import (
	"context"
	"sync"

	"github.com/gopgas/gopgas/verbs/driver"
)

// Provider counts the calls to another provider and the completions from it.
type Provider struct {
	driver.Provider
	sink  func(Event)
	total counters
	polls pollCounters

	mu       sync.Mutex
	contexts int
	qps      map[QP]*counters
}

// New wraps inner. Each context, QP and CQ that is opened through the result is
// counted; name and devices are inner's own.
func New(inner driver.Provider, opts ...Option) *Provider {
	p := &Provider{Provider: inner, qps: map[QP]*counters{}}
	for _, opt := range opts {
		opt(p)
	}
	return p
}

// An Option changes how a Provider traces.
type Option func(*Provider)

// WithSink makes the provider call f for each request, completion and change of
// state, in addition to counting. The goroutine that posts or polls calls f;
// several may do so at once. f must not call back into the provider.
func WithSink(f func(Event)) Option { return func(p *Provider) { p.sink = f } }

// Open opens a device of the wrapped provider.
func (p *Provider) Open(ctx context.Context, device string, opts driver.Options) (driver.Context, error) {
	inner, err := p.Provider.Open(ctx, device, opts)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &deviceContext{Context: inner, provider: p, number: p.contexts}
	c.qps.Store(&map[uint32]*counters{})
	p.contexts++
	return c, nil
}

// Snapshot holds the counts since New or the latest Reset.
type Snapshot struct {
	Total Counts
	QPs   map[QP]Counts // of all QPs ever created, closed ones too

	Polls      uint64 // calls of CQ.Poll
	EmptyPolls uint64 // of these, how many found nothing
	Waits      uint64 // calls of CQ.Wait
}

// Snapshot reads all counters.
func (p *Provider) Snapshot() Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Snapshot{
		Total:      p.total.read(),
		QPs:        make(map[QP]Counts, len(p.qps)),
		Polls:      p.polls.polls.Load(),
		EmptyPolls: p.polls.empty.Load(),
		Waits:      p.polls.waits.Load(),
	}
	for name, c := range p.qps {
		s.QPs[name] = c.read()
	}
	return s
}

// Reset sets all counters to zero.
func (p *Provider) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total.reset()
	p.polls.reset()
	for _, c := range p.qps {
		c.reset()
	}
}

// tell hands e to the sink, if there is one.
func (p *Provider) tell(e Event) {
	if p.sink != nil {
		p.sink(e)
	}
}
