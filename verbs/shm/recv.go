//go:build linux

package shm

import (
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// PostRecv queues receives and publishes their lengths to the peer.
func (q *QP) PostRecv(wrs []driver.RecvRequest) (int, error) {
	q.mu.Lock()
	defer q.unlock()
	for i := range wrs {
		if err := q.postRecv(&wrs[i]); err != nil {
			return i, err
		}
	}
	q.granted()
	return len(wrs), nil
}

// postRecv queues one receive and tells the peer its length. Precondition: mu is held.
func (q *QP) postRecv(wr *driver.RecvRequest) error {
	switch {
	case q.closed:
		return fmt.Errorf("shm: QP %d: %w", q.num, driver.ErrClosed)
	case q.state == driver.StateErr:
		q.complete(q.recvCQ, driver.Completion{ID: wr.ID, Status: driver.Flushed, Op: driver.OpRecv})
		return nil
	}
	if err := q.receives.Push(wr); err != nil {
		q.granted() // for the receives before it
		return fmt.Errorf("shm: %w: %d receives posted", err, q.receives.Len())
	}
	q.lengths.store(q.posted, uint64(wq.Length(wr.Local)))
	q.posted++
	q.own.posted.Store(q.posted) // partner: QP.credit at the peer
	return nil
}

// granted rings the peer if it waits for a receive or for room in its ring. The
// caller has stored posted or taken before, with an atomic (partner: QP.attempt
// at the peer).
func (q *QP) granted() {
	if q.remote != nil && q.remote.block.want.Load() != 0 {
		q.tellPeer()
	}
}

// drain takes all messages out of the peer's ring. It checks each value from there:
// an error means that the peer wrote nonsense. Precondition: connected.
func (q *QP) drain() error {
	head := q.remote.block.head.Load()
	if head-q.read > q.remote.ring.capacity() {
		return q.unlessReset(corrupt("%d lines put, %d taken", head, q.read))
	}
	for q.read != head && q.state != driver.StateErr {
		rec, err := q.remote.ring.get(q.read, head-q.read)
		if err != nil {
			return q.unlessReset(err)
		}
		if err := q.receive(rec); err != nil {
			return err
		}
		if q.state != driver.StateErr {
			q.read += linesOf(rec.bytes)
			q.own.taken.Store(q.read) // partner: QP.room at the peer
			q.granted()
		}
	}
	return nil
}

// peerReset reports whether the peer has left the epoch that this side reads. Its ring
// then holds messages of another connection. If not, all that this side has read there is
// of this connection: the reads come ahead of the look.
func (q *QP) peerReset() bool {
	atomics.AcquireRelease()
	return epochOf(q.remote.block.conn.Load()) != epochOf(q.expect)
}

// unlessReset returns err, or nil if the peer has been reset.
func (q *QP) unlessReset(err error) error {
	if q.peerReset() {
		return nil
	}
	return err
}

// receive applies one record, that of a message to the first receive.
func (q *QP) receive(rec record) error {
	switch {
	case rec.kind == recordRequest:
		return q.respond(rec)
	case rec.kind == recordResponse:
		return q.takeResponse(rec)
	case rec.kind == recordPad:
		return nil
	case q.receives.First() == nil:
		return q.unlessReset(corrupt("a message without a receive"))
	}
	switch rec.kind {
	case recordData:
		return q.receiveData(rec)
	case recordNotice:
		q.received(driver.Completion{Op: driver.OpRecvImm, HasImm: true, Imm: uint32(rec.extra >> 32), Bytes: int(uint32(rec.extra))})
		return nil
	case recordTooBig:
		q.receiveTooBig()
		return nil
	}
	return corrupt("record kind %d", rec.kind)
}

// receiveData copies a piece of a SEND out of the ring into the first receive, and completes it behind
// the last piece.
func (q *QP) receiveData(rec record) error {
	r := q.receives.First()
	if rec.bytes > uint64(wq.Length(r.Local)-q.partial) {
		return corrupt("more data than the receive it was told of takes")
	}
	wq.Scatter(r.Local, q.partial, q.remote.ring.data(q.read, rec.bytes))
	if q.peerReset() {
		return fail(driver.RetryExceeded, fmt.Errorf("%w: the peer reset its QP within a message", driver.ErrLost))
	}
	q.partial += int(rec.bytes)
	if rec.last {
		q.received(driver.Completion{Op: driver.OpRecv, Bytes: q.partial})
	}
	return nil
}

// received completes the first receive.
func (q *QP) received(wc driver.Completion) {
	wc.ID = q.receives.First().ID
	q.receives.Pop()
	q.partial = 0
	q.complete(q.recvCQ, wc)
}

func (q *QP) receiveTooBig() {
	r := q.receives.First()
	err := fmt.Errorf("shm: %w: a message longer than the receive of %d bytes", driver.ErrInvalid, wq.Length(r.Local))
	q.received(driver.Completion{Status: driver.LocalLength, Op: driver.OpRecv, Err: err})
	q.toErr(driver.Flushed, nil)
}
