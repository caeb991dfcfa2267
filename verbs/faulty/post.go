package faulty

import (
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// PostSend takes requests, draws a hold for each, and starts those that are not
// held.
func (q *qp) PostSend(wrs []driver.WorkRequest) (int, error) {
	if len(wrs) == 0 {
		return 0, nil
	}
	q.dev.lock()
	defer q.dev.unlock()
	switch {
	case q.closed || q.dev.closed:
		return 0, driver.ErrClosed
	case !wq.TakesSends(q.state):
		return 0, driver.ErrState
	}
	n, err := q.take(wrs)
	q.dev.progress()
	return n, err
}

// take accepts all of wrs, or as many as the plan and the queue's depth allow.
func (q *qp) take(wrs []driver.WorkRequest) (int, error) {
	full, upTo := q.refusal(len(wrs))
	if full {
		return 0, driver.ErrQueueFull
	}
	for i := range wrs {
		if i == upTo && i > 0 && q.mayRefuse() {
			return i, driver.ErrQueueFull
		}
		if q.sends.Room() == 0 {
			return i, driver.ErrQueueFull
		}
		if q.dev.plan.hides(&wrs[i]) {
			return i, driver.ErrUnsupported
		}
		q.accept(&wrs[i])
	}
	return len(wrs), nil
}

// accept puts a request into the queue and draws its faults: when it starts, how late its completion
// comes, whether later requests may pass it, and whether it fails. Precondition: the device is locked.
func (q *qp) accept(wr *driver.WorkRequest) {
	d, plan := q.dev, q.dev.plan
	r := q.sends.Push(wr)
	start := plan.delay(q.draw, plan.DelayStarts)
	r.late = plan.delay(q.draw, plan.DelayCompletions)
	behind := plan.delay(q.draw, plan.Reorder)
	if r.yields = behind != (delay{}); r.yields && q.passable(r) {
		start.time, start.polls = max(start.time, behind.time), max(start.polls, behind.polls)
	}
	r.start = d.hold(start)
	r.doom, r.cut = plan.doom(q, r.number), plan.cutAt(q, r.number)
	if q.state == driver.StateErr {
		q.finish(r, driver.Completion{Status: driver.Flushed, Op: wr.Op, QP: q.num})
	}
	d.posted()
}

// PostRecv hands receives to the wrapped queue pair at once.
func (q *qp) PostRecv(wrs []driver.RecvRequest) (int, error) {
	q.dev.lock()
	defer q.dev.unlock()
	if q.closed || q.dev.closed {
		return 0, driver.ErrClosed
	}
	n, err := q.recvs.post(wrs)
	q.dev.progress()
	return n, err
}
