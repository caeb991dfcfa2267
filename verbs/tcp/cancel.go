//go:build linux

package tcp

import "github.com/gopgas/gopgas/verbs/driver"

// Cancel ends the requests with this id on the send queue. When it returns, their
// memory is the caller's. It drops frames that had not started, and copies the
// remaining bytes of a frame under way. It discards a response in reception. The peer
// may have applied a request, or its front. An Announced WRITE goes on from a copy.
func (q *qp) Cancel(id uint64) {
	q.lock()
	for i := range q.sq.Len() {
		r := q.sq.At(i)
		if r.ID == id && !r.Canceled && !q.sq.finished(r) {
			q.sq.shorten(r) // the peer has applied the front of a run
			q.cancel(r)
		}
	}
	q.flush()
	q.retire()
	q.unlock()
	q.dev.ring()
}

// cancel ends a request of the send queue and completes it as canceled. When it returns, the caller's
// memory is free: the rest of frames that are half sent is copied, and so is all of an Announced WRITE.
// Precondition: the lock is held.
func (q *qp) cancel(r *request) {
	if l := q.link; l != nil {
		if l.in.q == q && l.in.left > 0 && l.in.frame.kind == kindData && q.sq.oldestRead() == r {
			l.in.to.drop()
		}
		l.out.detach(func(p *piece) bool { return p.req == r })
	}
	if r.Canceled = true; r.Flags&driver.Announced != 0 {
		q.sq.capture(r, r.Sent) // bytes in frames were copied above, or have left
	} else {
		clear(r.Local)
		r.saved, r.dropped = nil, true
	}
	r.each(func() { q.completeSend(driver.Completion{ID: r.ID, Status: driver.Canceled, Op: r.Op}) })
}
