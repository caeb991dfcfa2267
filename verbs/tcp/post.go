//go:build linux

package tcp

import "github.com/gopgas/gopgas/verbs/driver"

// PostSend queues requests. It gathers small unsignaled ones, and READs and atomics behind
// one that awaits its response, until the program posts another signaled request or polls.
// They also leave when combineMax bytes are there, or CombineDelay is over.
func (q *qp) PostSend(wrs []driver.WorkRequest) (int, error) {
	n, err := q.postSends(wrs)
	q.dev.ring()
	return n, err
}

// postSends queues requests under the lock, and sends their frames now or later. It returns how many it
// took.
func (q *qp) postSends(wrs []driver.WorkRequest) (int, error) {
	q.lock()
	defer q.unlock()
	if len(wrs) == 1 && q.writeShort(&wrs[0]) {
		q.dispatch(false)
		return 1, nil
	}
	n, err := len(wrs), error(nil)
	urgent, lent := false, false
	for i := range wrs {
		if err = q.post(&wrs[i]); err != nil {
			n = i
			break
		}
		urgent = urgent || !q.combines(&wrs[i])
		lent = lent || lends(&wrs[i])
	}
	q.dispatch(urgent || lent)
	if lent {
		q.takeOver(n)
	}
	return n, err
}

// lends reports whether the payload of an inline request leaves from the caller's
// memory. That is the part that the socket takes during the post.
func lends(wr *driver.WorkRequest) bool {
	return wr.Flags&driver.Inline != 0 && wr.Length() > inlineCopy
}

// takeOver copies the bytes of such payloads that the socket did not take, among the
// last n requests.
func (q *qp) takeOver(n int) {
	for i := max(0, q.sq.Len()-n); i < q.sq.Len(); i++ {
		if r := q.sq.At(i); r.Flags&driver.Inline != 0 && r.length > inlineCopy && r.saved == nil {
			if unsent := q.unsent(r); unsent < r.Sent || r.Sent < r.length {
				q.sq.capture(r, unsent)
				if q.link != nil {
					q.link.out.move(r)
				}
			}
		}
	}
}

// unsent returns the offset of the first byte of r's payload that has not left.
func (q *qp) unsent(r *request) int {
	if q.link == nil {
		return 0
	}
	return q.link.out.unsent(r)
}

// combines reports whether a request that was posted may wait for others. One that takes a response
// may wait while an earlier one awaits its response, as in Nagle's algorithm (RFC 896).
func (q *qp) combines(wr *driver.WorkRequest) bool {
	if hasResponse(wr) {
		return q.sq.reads.Len() > 1
	}
	return wr.Flags&driver.Signaled == 0 && (wr.Op == driver.OpWrite || wr.Op == driver.OpWriteImm ||
		wr.Op == driver.OpSend || wr.Op == driver.OpWriteBlocks || wr.Op == driver.OpAtomic && len(wr.Local) == 0 ||
		wr.Op == driver.OpAccumulate && wr.Flags&driver.Fetch == 0)
}

// post puts one request into the send queue. Its frames go to the connection's buffer if all earlier
// ones are there. Precondition: the lock is held.
func (q *qp) post(wr *driver.WorkRequest) error {
	switch {
	case q.closed:
		return driver.ErrClosed
	case q.state == driver.StateErr:
		q.completeSend(driver.Completion{ID: wr.ID, Op: wr.Op, Status: driver.Flushed})
		return nil
	case q.sq.Room() == 0:
		return driver.ErrQueueFull
	}
	r := q.sq.Push(wr)
	if q.link != nil && !q.link.out.blocked {
		q.fill()
	}
	if wr.Flags&driver.Inline != 0 && r.stage == stageQueued && r.length <= inlineCopy {
		q.sq.capture(r, 0)
	}
	return nil
}

// dispatch sends the queued frames, now or later.
func (q *qp) dispatch(urgent bool) {
	switch {
	case q.link == nil:
	case urgent || q.link.out.queued >= combineMax:
		q.link.flush()
	default:
		q.later()
	}
}

// later makes the next poll flush q, or the ticker after CombineDelay.
func (q *qp) later() {
	if !q.dirty {
		q.dirty = true
		q.dev.flushLater(q)
	}
}

// flush sends the frames that may leave.
func (q *qp) flush() {
	if q.link != nil {
		q.link.flush()
	}
}

// PostRecv offers receives. Each is a credit. The next acknowledgement announces it to
// the peer, or a frame at once if the peer is short of credits.
func (q *qp) PostRecv(wrs []driver.RecvRequest) (int, error) {
	q.lock()
	defer q.unlock()
	n, err := len(wrs), error(nil)
	for i := range wrs {
		if err = q.postRecv(&wrs[i]); err != nil {
			n = i
			break
		}
	}
	if q.link != nil && q.rq.starving() {
		q.ackDue = true
		q.later()
	}
	return n, err
}

// postRecv puts one receive into the receive queue. Precondition: the lock is held.
func (q *qp) postRecv(wr *driver.RecvRequest) error {
	switch {
	case q.closed:
		return driver.ErrClosed
	case q.state == driver.StateErr:
		q.completeRecv(driver.Completion{ID: wr.ID, Op: driver.OpRecv, Status: driver.Flushed})
		q.dev.ring()
		return nil
	}
	return q.rq.Push(wr)
}
