//go:build linux

package tcp

import (
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// openData sends the payload of a response to the segments of its READ or ACCUMULATE.
func (q *qp) openData(f *frame) error {
	r := q.sq.oldestRead()
	if r == nil || !r.takesData() || f.bodySize > r.length-r.received {
		return fmt.Errorf("%w: response to no READ", errProtocol)
	}
	if f.last() != (f.bodySize == r.length-r.received) {
		return fmt.Errorf("%w: response of the wrong length", errProtocol)
	}
	if r.dropped {
		q.link.in.to.drop()
	} else {
		q.link.in.to.scatter(r.Local, r.received)
	}
	return nil
}

// applyResponse handles a response of the target to this side's requests.
func (q *qp) applyResponse(f *frame) error {
	switch f.kind {
	case kindAck:
		return q.applyAck(f)
	case kindNak:
		return q.applyNak(f)
	case kindData:
		r := q.sq.oldestRead()
		r.received += f.bodySize
		if f.last() {
			q.sq.endRead(r)
		}
	case kindValue:
		return q.applyValue(f)
	}
	return nil
}

func (q *qp) applyAck(f *frame) error {
	if f.seq > q.sq.seq || f.seq < q.sq.acked || f.credits < q.sq.credits {
		return fmt.Errorf("%w: acknowledgement of %d, %d framed", errProtocol, f.seq, q.sq.seq)
	}
	q.sq.acked, q.sq.credits = f.seq, f.credits
	return nil
}

// applyValue stores the earlier value of the oldest atomic that awaits one, and completes it.
func (q *qp) applyValue(f *frame) error {
	r := q.sq.oldestRead()
	if r == nil || r.takesData() {
		return fmt.Errorf("%w: response to no atomic", errProtocol)
	}
	if !r.dropped {
		atomics.PutUint(r.Local[0].Mem, f.value)
	}
	q.sq.endRead(r)
	return nil
}

// applyNak fails the request that the peer refused and all that follow, and leaves the
// connection.
func (q *qp) applyNak(f *frame) error {
	status := driver.Status(f.op)
	read := q.sq.oldestRead()
	known := f.seq >= q.sq.acked && f.seq < q.sq.begun() || read != nil && read.seq == f.seq
	if !known || status == driver.Success || status > driver.GeneralError {
		return fmt.Errorf("%w: refusal of request %d, %d framed", errProtocol, f.seq, q.sq.seq)
	}
	q.sq.acked = max(q.sq.acked, f.seq)
	q.retire()
	if q.sq.Len() > 0 && q.sq.First().Canceled {
		status = driver.Flushed // the refused request was canceled: the next one must not get its cause
	}
	q.fail(status, nil)
	q.disconnect()
	return nil
}

// retire takes finished requests off the send queue.
func (q *qp) retire() {
	for q.sq.Len() > 0 {
		r := q.sq.First()
		if !q.sq.finished(r) {
			q.sq.shorten(r)
			return
		}
		if r.Flags&driver.Signaled != 0 && !r.Canceled {
			wc := driver.Completion{ID: r.ID, Op: r.Op}
			if r.Op == driver.OpRead || r.Op == driver.OpReadBlocks {
				wc.Bytes = r.length
			}
			q.completeSend(wc)
		}
		q.sq.Pop()
	}
}
