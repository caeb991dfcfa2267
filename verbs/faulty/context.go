package faulty

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// device is an open context with faults. One lock guards it and all of its
// queues: a fault injector may be slow, but must not add races.
//
// Locks: mu, then the wrapped provider's, then newsMu. The wrapped provider may
// report events while a goroutine holds mu of this or another context. So
// observe takes newsMu only.
type device struct {
	inner    driver.Context
	provider *Provider
	plan     *Plan
	number   int // of opening, from 1
	bell     *wait.Bell
	onEvent  func(driver.AsyncEvent)

	mu           sync.Mutex
	closed       bool
	now          time.Time // of the latest lock
	polls        uint64
	posts        int
	created      int
	stalledUntil time.Time
	cqs          []*cq
	qps          []*qp
	shuffle      *rand.Rand
	moved        bool      // a completion can be polled: ring the bell
	outbox       []news    // events for the pump to report
	next         time.Time // when the pump has something to do; zero: never
	armed        time.Time // when it will wake

	newsMu sync.Mutex
	news   []news
	byNum  map[uint32]*qp // changed under mu as well

	kick    chan struct{}
	stop    chan struct{}
	stopped chan struct{}
}

// newDevice returns a device around the one that the caller opens next.
func newDevice(p *Provider, opts driver.Options) *device {
	return &device{
		provider: p, plan: &p.plan, bell: opts.Bell, onEvent: opts.OnEvent, byNum: map[uint32]*qp{},
		kick: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
}

// Info returns the wrapped device's abilities without those that the plan hides.
func (d *device) Info() driver.DeviceInfo {
	info := d.inner.Info()
	d.plan.hide(&info)
	return info
}

// RegMR returns the wrapped provider's region, or refuses a kind of memory.
func (d *device) RegMR(ctx context.Context, mem driver.Memory, access driver.Access) (driver.MR, error) {
	if d.plan.RefuseUnpaged && !mem.Kind.Paged() {
		return nil, &driver.KindError{Kind: mem.Kind, Provider: d.provider.Name()}
	}
	return d.inner.RegMR(ctx, mem, access)
}

// NewLanding returns the wrapped provider's landing.
func (d *device) NewLanding(ctx context.Context) (driver.Landing, error) {
	return d.inner.NewLanding(ctx)
}

// CreateCQ makes a queue around one of the wrapped device that holds more.
func (d *device) CreateCQ(ctx context.Context, depth int) (driver.CQ, error) {
	below := max(depth, min(depth+extraDepth, d.inner.Info().MaxCQDepth))
	inner, err := d.inner.CreateCQ(ctx, below)
	if err != nil {
		return nil, err
	}
	return d.newCQ(inner, depth, below), nil
}

// CreateQP implements driver.Context. The QP below completes into the queues below those of cfg.
func (d *device) CreateQP(ctx context.Context, cfg driver.QPConfig) (driver.QP, error) {
	send, sendOK := cfg.SendCQ.(*cq)
	recv, recvOK := cfg.RecvCQ.(*cq)
	if !sendOK || !recvOK || send.dev != d || recv.dev != d {
		return nil, invalid("the CQs of a QP must come from the same context")
	}
	cfg.SendCQ, cfg.RecvCQ = send.inner, recv.inner
	inner, err := d.inner.CreateQP(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return d.plan.expose(d.newQP(inner, send, recv, cfg)), nil
}

// drop forgets a queue pair that was closed. The caller holds mu.
func (d *device) drop(q *qp) {
	d.qps = slices.DeleteFunc(d.qps, func(o *qp) bool { return o == q })
	d.newsMu.Lock()
	delete(d.byNum, q.num)
	d.newsMu.Unlock()
}

func (d *device) dropCQ(c *cq) {
	d.cqs = slices.DeleteFunc(d.cqs, func(o *cq) bool { return o == c })
}

// Close ends the pump, then the device below.
func (d *device) Close() error {
	d.lock()
	again, qps := d.closed, d.qps
	d.closed = true
	d.unlock()
	if again {
		return nil
	}
	close(d.stop)
	<-d.stopped
	for _, q := range qps {
		d.provider.closed(q)
	}
	defer d.bell.Ring()
	return d.inner.Close()
}
