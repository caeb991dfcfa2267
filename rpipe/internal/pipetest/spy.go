package pipetest

import (
	"context"
	"sync"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A Spy notes the local memory of requests, which verbs/trace does not.
type Spy struct {
	driver.Provider
	mu   sync.Mutex
	on   bool
	seen []driver.Segment
}

// Start begins to note segments.
func (s *Spy) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on, s.seen = true, nil
}

// Stop ends what Start began, and returns the segments.
func (s *Spy) Stop() []driver.Segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = false
	return s.seen
}

// Open opens a device whose requests s sees.
func (s *Spy) Open(ctx context.Context, device string, opts driver.Options) (driver.Context, error) {
	c, err := s.Provider.Open(ctx, device, opts)
	return &spyContext{c, s}, err
}

// A spyContext is a device whose queue pairs a Spy watches.
type spyContext struct {
	driver.Context
	spy *Spy
}

// CreateQP implements driver.Context.
func (c *spyContext) CreateQP(ctx context.Context, cfg driver.QPConfig) (driver.QP, error) {
	qp, err := c.Context.CreateQP(ctx, cfg)
	if mapper, ok := qp.(driver.Mapper); ok {
		return &spyMapper{spyQP{qp, c.spy}, mapper}, err
	}
	return &spyQP{qp, c.spy}, err
}

// A spyQP hands the segments of posted requests to its Spy.
type spyQP struct {
	driver.QP
	spy *Spy
}

// A spyMapper is a spyQP that can map, since a wrapper must not hide that.
type spyMapper struct {
	spyQP
	driver.Mapper
}

// PostSend implements driver.QP.
func (q *spyQP) PostSend(wrs []driver.WorkRequest) (int, error) {
	q.spy.mu.Lock()
	if q.spy.on {
		for i := range wrs {
			q.spy.seen = append(q.spy.seen, wrs[i].Local...)
		}
	}
	q.spy.mu.Unlock()
	return q.QP.PostSend(wrs)
}
