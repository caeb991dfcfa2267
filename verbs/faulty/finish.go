package faulty

import (
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// The end of a send, from the completion below to the one that the caller polls:
//
//	completion below -> ended -> finish: the request is done, its memory free    -> owe: hold the completion back
//	Poll -> deliver: the oldest request that is done and due -> conclude -> judge: which status?
//
// A canceled request is delivered ahead of earlier ones, and told marks that. All run under the device's lock.

var errBroke = fmt.Errorf("%w: the queue pair below went to ERR", driver.ErrLost)

// finish ends r with c, which can be polled once its delay is over. faulty does
// not touch the request's memory from now on.
func (q *qp) finish(r *request, c driver.Completion) {
	if r.phase == started {
		q.sendCQ.below--
	}
	if !r.Canceled {
		c.ID = r.ID
		q.owe(r, c)
	}
	if r.phase = done; r.told {
		r.phase = delivered
	}
	r.Release()
}

// owe makes c the completion of r, which can be polled once its delay is over.
func (q *qp) owe(r *request, c driver.Completion) {
	if c.Status == driver.Canceled {
		q.canceled++
	}
	if r.Flags&driver.Signaled != 0 {
		q.owed++
	}
	r.end, r.due = c, q.dev.hold(r.late)
}

// ended takes a completion from below.
func (q *qp) ended(r *request, c driver.Completion) {
	switch c.Status {
	case driver.Success:
		q.prove(&r.WorkRequest)
	case driver.Flushed:
		if q.state != driver.StateErr { // this side did not cause it: the connection is lost
			q.blame(q.sends.next, errBroke)
		}
	}
	q.finish(r, c)
	if c.Status != driver.Success && c.Status != driver.Canceled && q.state != driver.StateErr {
		q.state = driver.StateErr
		q.flushWaiting()
	}
}

// deliver returns the next due completion of the send queue.
func (q *qp) deliver() (arrival, bool) {
	if c, ok := q.deliverCanceled(); ok {
		return c, true
	}
	for q.sends.Len() > 0 {
		r := q.sends.First()
		if r.phase == delivered {
			q.sends.Pop()
			continue
		}
		if r.phase != done || !q.dev.over(r.due) {
			break
		}
		c, wanted := q.conclude(r)
		q.sends.Pop()
		if wanted {
			return c, true
		}
	}
	return arrival{}, false
}

// deliverCanceled completes a canceled request before earlier ones, which may
// wait for other reasons.
func (q *qp) deliverCanceled() (arrival, bool) {
	for i := 0; i < q.sends.Len() && q.canceled > 0; i++ {
		r := q.sends.At(i)
		if r.told || r.phase != done && !r.Canceled || r.end.Status != driver.Canceled || !q.dev.over(r.due) {
			continue
		}
		c, _ := q.conclude(r)
		if r.told = true; r.phase == done {
			r.phase = delivered
		}
		return c, true
	}
	return arrival{}, false
}

// conclude returns r's completion, and whether the caller polls it.
func (q *qp) conclude(r *request) (arrival, bool) {
	if r.end.Status == driver.Canceled {
		q.canceled--
	}
	a := arrival{Completion: q.judge(r)}
	if r.Flags&driver.Signaled != 0 {
		a.owner = q
	}
	return a, a.owner != nil || a.Status != driver.Success
}

// judge orders the statuses of one QP as package driver promises: successes,
// one cause, then flushed ones only. The provider below may report another
// order for requests that passed earlier ones.
func (q *qp) judge(r *request) driver.Completion {
	c := r.end
	switch {
	case c.Status == driver.Canceled:
	case q.failed || q.flushing && c.Status == driver.Success:
		c = driver.Completion{ID: c.ID, Status: driver.Flushed, Op: r.Op, QP: q.num}
	case c.Status == driver.Flushed && r.number < q.blamed:
		c.Status, c.Err = driver.RetryExceeded, q.cause
		q.failed = true
	case c.Status == driver.Flushed && q.takeCause(&c):
		q.failed = true
	case c.Status == driver.Flushed:
		q.flushing = true
	case c.Status != driver.Success:
		q.failed = true
	}
	return c
}

// takeCause gives c the cause of a later request that passed it below, if there is
// one: the cause comes first.
func (q *qp) takeCause(c *driver.Completion) bool {
	for i := range q.sends.Len() {
		end := &q.sends.At(i).end
		if q.sends.At(i).phase != done {
			continue
		}
		switch end.Status {
		case driver.Success, driver.Flushed, driver.Canceled:
			continue
		}
		c.Status, c.Err = end.Status, end.Err
		return true
	}
	return false
}
