package loop

import (
	"context"
	"sync"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// loopContext is one rank's end of the wire.
type loopContext struct {
	provider *Provider
	bell     *wait.Bell
	onEvent  func(driver.AsyncEvent)
	keys     keyTable

	mu     sync.Mutex
	closed bool
	qps    []*qp
	cqs    []*cq
}

func (c *loopContext) Info() driver.DeviceInfo { return info() }

func (c *loopContext) RegMR(_ context.Context, mem driver.Memory, access driver.Access) (driver.MR, error) {
	return c.keys.add(mem.Bytes, access)
}

// NewLanding returns ErrUnsupported: the poster applies each write at once, and no
// owner needs to take memory back.
func (c *loopContext) NewLanding(context.Context) (driver.Landing, error) {
	return nil, driver.ErrUnsupported
}

// CreateCQ implements driver.Context.
func (c *loopContext) CreateCQ(_ context.Context, depth int) (driver.CQ, error) {
	q := &cq{bell: c.bell}
	q.Init(depth)
	q.ready = q.Ready
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, driver.ErrClosed
	}
	c.cqs = append(c.cqs, q)
	return q, nil
}

// CreateQP implements driver.Context. Other devices of the provider find the QP by its number.
func (c *loopContext) CreateQP(_ context.Context, cfg driver.QPConfig) (driver.QP, error) {
	q := &qp{
		ctx: c, sendCQ: cfg.SendCQ.(*cq), recvCQ: cfg.RecvCQ.(*cq),
		sends: wq.NewSendQueue(cfg.SendDepth), recvs: wq.NewRecvQueue(cfg.RecvDepth, cfg.MaxSegments),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, driver.ErrClosed
	}
	c.provider.attach(q)
	c.qps = append(c.qps, q)
	return q, nil
}

// Close ends the rank's side. It closes the regions first, so that no peer
// changes memory any more. Then it closes the queue pairs, which breaks their
// peers.
func (c *loopContext) Close() error {
	c.mu.Lock()
	qps, cqs, closed := c.qps, c.cqs, c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return nil
	}
	c.keys.closeAll()
	for _, q := range qps {
		_ = q.Close() // cannot fail
	}
	for _, q := range cqs {
		_ = q.Close() // cannot fail
	}
	return nil
}

// forget takes a closed queue pair off the list of those that Close ends.
func (c *loopContext) forget(q *qp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.qps {
		if c.qps[i] == q {
			c.qps = append(c.qps[:i:i], c.qps[i+1:]...)
			return
		}
	}
}

func (c *loopContext) event(e driver.AsyncEvent) {
	if c.onEvent != nil {
		c.onEvent(e)
	}
}
