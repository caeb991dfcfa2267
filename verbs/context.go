package verbs

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A Context is one open device.
type Context struct {
	drv    driver.Context
	info   DeviceInfo
	closed atomic.Bool

	mu  sync.Mutex // serializes changes of qps
	qps atomic.Pointer[map[uint32]*QP]
}

// Open opens a device of p, the first one when device is empty. It is local.
func Open(ctx context.Context, p driver.Provider, device string, opts Options) (*Context, error) {
	if device == "" {
		devices, err := p.Devices(ctx)
		if err != nil {
			return nil, &OpError{Op: "open", Provider: p.Name(), Index: -1, Err: err}
		}
		if len(devices) > 0 { // else the provider says why there is none
			device = devices[0].Name
		}
	}
	c := &Context{}
	c.qps.Store(&map[uint32]*QP{})
	opts.OnEvent = c.observe(opts.OnEvent)
	drv, err := p.Open(ctx, device, opts)
	if err != nil {
		return nil, &OpError{Op: "open", Provider: p.Name(), Device: device, Index: -1, Err: err}
	}
	c.drv, c.info = drv, drv.Info()
	return c, nil
}

// Info describes the device. It is local.
func (c *Context) Info() DeviceInfo { return c.info }

// AllocPD makes a protection domain: local keys of its regions are good for
// its queue pairs only. It is local.
func (c *Context) AllocPD() (*PD, error) {
	if c.closed.Load() {
		return nil, c.fail("alloc PD", 0, driver.ErrClosed)
	}
	return &PD{ctx: c}, nil
}

// CreateCQ makes a completion queue that holds depth completions. It is local.
func (c *Context) CreateCQ(ctx context.Context, depth int) (*CQ, error) {
	const op = "create CQ"
	if c.closed.Load() {
		return nil, c.fail(op, 0, driver.ErrClosed)
	}
	if depth < 1 || depth > c.info.MaxCQDepth {
		return nil, c.fail(op, 0, invalid("depth %d, the device takes 1 to %d", depth, c.info.MaxCQDepth))
	}
	drv, err := c.drv.CreateCQ(ctx, depth)
	if err != nil {
		return nil, c.fail(op, 0, err)
	}
	return &CQ{ctx: c, drv: drv}, nil
}

// NewLanding makes a landing that is shut, where a peer's writes go to memory that
// its owner may take back: driver.ErrUnsupported without MemoryInfo.Landings. It is
// local.
func (c *Context) NewLanding(ctx context.Context) (Landing, error) {
	const op = "new landing"
	if c.closed.Load() {
		return nil, c.fail(op, 0, driver.ErrClosed)
	}
	l, err := c.drv.NewLanding(ctx)
	return l, c.fail(op, 0, err)
}

// Close releases the device with everything that was made on it: requests
// outstanding at peers complete with an error there. It is idempotent.
func (c *Context) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.fail("close", 0, c.drv.Close())
}

// observe moves the queue pair of an event to ERR, then calls the owner's
// handler.
func (c *Context) observe(next func(AsyncEvent)) func(AsyncEvent) {
	return func(e AsyncEvent) {
		for num, qp := range *c.qps.Load() {
			switch {
			case e.Kind == EventDeviceFatal:
				qp.broke(qp.life())
			case e.Kind == EventQPFatal && num == e.QP:
				qp.broke(e.Life)
			}
		}
		if next != nil {
			next(e)
		}
	}
}

// addQP copies the table of queue pairs and adds one, so that Poll reads the
// table without a lock.
func (c *Context) addQP(qp *QP) {
	c.mu.Lock()
	defer c.mu.Unlock()
	qps := maps.Clone(*c.qps.Load())
	qps[qp.num] = qp
	c.qps.Store(&qps)
}

// dropQP takes a queue pair out of the list in which events find it.
func (c *Context) dropQP(num uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	qps := maps.Clone(*c.qps.Load())
	delete(qps, num)
	c.qps.Store(&qps)
}
