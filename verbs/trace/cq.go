package trace

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A pollCounters counts calls of Poll, those that found nothing, and calls of Wait.
type pollCounters struct{ polls, empty, waits atomic.Uint64 }

func (c *pollCounters) reset() {
	c.polls.Store(0)
	c.empty.Store(0)
	c.waits.Store(0)
}

// A completionQueue counts the completions that pass, for the provider and for each QP.
type completionQueue struct {
	driver.CQ
	context *deviceContext
}

// Poll implements driver.CQ. The sink gets the completions in order, ahead of the caller.
func (q *completionQueue) Poll(wc []driver.Completion) (int, error) {
	n, err := q.CQ.Poll(wc)
	p := q.context.provider
	p.polls.polls.Add(1)
	if n == 0 {
		p.polls.empty.Add(1)
		return n, err
	}
	qps := *q.context.qps.Load()
	for i := range wc[:n] {
		c := &wc[i]
		p.total.completion(c.Status)
		if counts := qps[c.QP]; counts != nil {
			counts.completion(c.Status)
		}
		p.tell(Event{Kind: Completed, QP: QP{q.context.number, c.QP}, ID: c.ID, Op: c.Op, Bytes: c.Bytes,
			Status: c.Status, Err: c.Err})
	}
	return n, err
}

// Arm arms the wrapped queue.
func (q *completionQueue) Arm(solicited bool) error {
	if a, ok := q.CQ.(driver.Armer); ok {
		return a.Arm(solicited)
	}
	return driver.ErrUnsupported
}

func (q *completionQueue) Wait(ctx context.Context) error {
	q.context.provider.polls.waits.Add(1)
	return q.CQ.Wait(ctx)
}
