package faulty

import "github.com/gopgas/gopgas/verbs/driver"

// A canceler is the driver.Canceler of a QP. A request that was not posted below ends here.
type canceler struct{ qp *qp }

// Cancel ends the oldest request of that id: here if it is still held, else
// below.
func (c canceler) Cancel(id uint64) {
	if number, below := c.qp.cancelHere(id); below {
		c.qp.QP.(driver.Canceler).Cancel(number)
	}
}

// cancelHere returns the number that the request has below if it has started.
func (q *qp) cancelHere(id uint64) (number uint64, below bool) {
	q.dev.lock()
	defer q.dev.unlock()
	for i := range q.sends.Len() {
		r := q.sends.At(i)
		if r.ID != id || r.phase > started || r.Canceled {
			continue
		}
		if r.phase == started {
			return r.number, true
		}
		q.cancel(r)
		q.dev.progress()
		return 0, false
	}
	return q.recvs.find(id)
}

// cancel ends a held request. An Announced WRITE goes on with a copy of its bytes.
func (q *qp) cancel(r *request) {
	c := driver.Completion{ID: r.ID, Status: driver.Canceled, Op: r.Op, QP: q.num}
	if r.Flags&driver.Announced == 0 {
		q.finish(r, c)
		return
	}
	r.Capture()
	q.owe(r, c)
	r.Canceled = true
}
