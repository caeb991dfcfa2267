package trace

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"

	"github.com/gopgas/gopgas/verbs/driver"
)

// deviceContext is an open device. Memory regions are the wrapped provider's.
type deviceContext struct {
	driver.Context
	provider *Provider
	number   int
	// qps finds a completion's counters without a lock; it is replaced, under
	// the provider's, when a QP is created.
	qps atomic.Pointer[map[uint32]*counters]
}

func (c *deviceContext) CreateCQ(ctx context.Context, depth int) (driver.CQ, error) {
	inner, err := c.Context.CreateCQ(ctx, depth)
	if err != nil {
		return nil, err
	}
	return &completionQueue{CQ: inner, context: c}, nil
}

// CreateQP implements driver.Context, with queues of the traced context.
func (c *deviceContext) CreateQP(ctx context.Context, cfg driver.QPConfig) (driver.QP, error) {
	send, sendOK := cfg.SendCQ.(*completionQueue)
	recv, recvOK := cfg.RecvCQ.(*completionQueue)
	if !sendOK || !recvOK {
		return nil, fmt.Errorf("%w: the CQs of a QP must come from the same traced context", driver.ErrInvalid)
	}
	cfg.SendCQ, cfg.RecvCQ = send.CQ, recv.CQ
	inner, err := c.Context.CreateQP(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return wrap(&queuePair{QP: inner, provider: c.provider, name: QP{c.number, inner.Num()}, counts: c.count(inner.Num())}), nil
}

// count makes the counters of a new QP.
func (c *deviceContext) count(num uint32) *counters {
	c.provider.mu.Lock()
	defer c.provider.mu.Unlock()
	counts := new(counters)
	qps := maps.Clone(*c.qps.Load())
	qps[num] = counts
	c.qps.Store(&qps)
	c.provider.qps[QP{c.number, num}] = counts
	return counts
}
