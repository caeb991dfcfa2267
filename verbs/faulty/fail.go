package faulty

import (
	"context"

	"github.com/gopgas/gopgas/verbs/driver"
)

// An Error makes a request fail without starting. All earlier requests
// complete, then the request completes with Status. Its QP is then in ERR and
// flushes all later requests.
type Error struct {
	Target
	Request int // the Nth posted on the QP, counting from 1
	Status  driver.Status
}

// doom returns the status with which q's nth request fails, or Success.
func (p *Plan) doom(q *qp, nth uint64) driver.Status {
	for i := range p.Errors {
		if e := &p.Errors[i]; uint64(e.Request) == nth && e.is(q) {
			return e.Status
		}
	}
	return driver.Success
}

// fail ends r, which has not started, and breaks its QP here and below.
func (q *qp) fail(r *request, status driver.Status, err error) {
	q.finish(r, driver.Completion{Status: status, Op: r.Op, QP: q.num, Err: err})
	q.enterErr()
}

// enterErr moves the QP to ERR because of a fault.
func (q *qp) enterErr() {
	q.state = driver.StateErr
	_ = q.QP.Modify(context.Background(), driver.StateErr, driver.Attr{}) // refused only where it is in ERR or closed already
	q.flushWaiting()
}

// flushWaiting ends the requests of a QP in ERR that have not started.
func (q *qp) flushWaiting() {
	for i := range q.sends.Len() {
		if r := q.sends.At(i); r.phase == waiting {
			q.finish(r, driver.Completion{Status: driver.Flushed, Op: r.Op, QP: q.num})
		}
	}
}
