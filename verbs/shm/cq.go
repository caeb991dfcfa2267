//go:build linux

package shm

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// CQ is a queue of completions. Poll and Wait make progress.
type CQ struct {
	wq.Completions
	ctx   *Context
	ready func() bool // worthAPoll, bound once
}

// CreateCQ makes a queue that holds depth completions.
func (c *Context) CreateCQ(_ context.Context, depth int) (driver.CQ, error) {
	if c.ended.Load() {
		return nil, fmt.Errorf("shm: %w", driver.ErrClosed)
	}
	q := &CQ{ctx: c}
	q.Init(depth)
	q.ready = q.worthAPoll
	return q, nil
}

// Poll takes completions, after the QPs with a rung doorbell have looked at
// their peers.
func (q *CQ) Poll(wc []driver.Completion) (int, error) {
	if q.ctx.doors.summary.Load() != 0 {
		q.ctx.progress()
	}
	if q.Empty() && q.ctx.ended.Load() {
		return 0, fmt.Errorf("shm: CQ: %w", driver.ErrClosed)
	}
	return q.Completions.Poll(wc)
}

// Wait sleeps on the context's bell.
func (q *CQ) Wait(ctx context.Context) error {
	q.ctx.waiting.RLock()
	defer q.ctx.waiting.RUnlock()
	if q.ctx.ended.Load() {
		return fmt.Errorf("shm: CQ: %w", driver.ErrClosed)
	}
	return q.ctx.bell.Wait(ctx, q.ready)
}

// worthAPoll makes progress, and reports whether Poll has something to return.
func (q *CQ) worthAPoll() bool {
	if q.ctx.doors.summary.Load() != 0 {
		q.ctx.progress()
	}
	return q.Ready() || q.ctx.ended.Load()
}

// Close wakes waiters; they and later calls get ErrClosed.
func (q *CQ) Close() error {
	q.Completions.Close()
	q.ctx.ring()
	return nil
}
