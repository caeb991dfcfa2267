package faulty

import (
	"context"
	"math/rand/v2"
	"sync/atomic"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// qp is one end of a connection. dev's lock guards all but life.
type qp struct {
	driver.QP
	dev            *device
	num            uint32
	number         int // of creation on its context, from 1
	sendCQ, recvCQ *cq
	peer           string // its address, once known
	state          driver.State
	closed         bool

	sends    sendQueue
	owed     int // signaled requests that have ended and were not polled yet
	canceled int // canceled requests in sends; their completions may go ahead of their turn
	post     [1]driver.WorkRequest
	proofs   map[access]span
	draw     *rand.Rand
	refuse   *rand.Rand

	recvs recvQueue

	// The failure of the QP; see judge.
	failed   bool   // a request has ended with the cause
	flushing bool   // a request was flushed
	blamed   uint64 // the cause ends the first flushed request before this number
	cause    error
	reported bool

	life atomic.Uint32 // counts the resets, so that current finds old news
}

// newQP makes a QP around inner. Each kind of fault has dice of its own, so that a run can be
// repeated from the seed.
func (d *device) newQP(inner driver.QP, send, recv *cq, cfg driver.QPConfig) *qp {
	q := &qp{QP: inner, dev: d, num: inner.Num(), sendCQ: send, recvCQ: recv, proofs: map[access]span{}}
	q.sends = sendQueue{Ring: wq.NewRing[request](cfg.SendDepth), next: 1}
	q.recvs = recvQueue{qp: q, ids: map[uint64]uint64{}, next: 1}
	d.lock()
	defer d.unlock()
	d.created++
	q.number = d.created
	q.draw = d.plan.dice(d.number, q.number, streamRequest)
	q.refuse = d.plan.dice(d.number, q.number, streamRefuse)
	q.recvs.dice = d.plan.dice(d.number, q.number, streamReceive)
	send.sources = append(send.sources, source{q, q.deliver})
	recv.sources = append(recv.sources, source{q, q.recvs.deliver})
	d.qps = append(d.qps, q)
	d.newsMu.Lock()
	d.byNum[q.num] = q
	d.newsMu.Unlock()
	return q
}

// Modify implements driver.QP. At RTR it learns the peer, which a cut may break, too.
func (q *qp) Modify(ctx context.Context, to driver.State, attr driver.Attr) error {
	switch to {
	case driver.StateErr, driver.StateReset:
		return q.stop(ctx, to, attr)
	}
	if err := q.QP.Modify(ctx, to, attr); err != nil { // may wait for the peer: no lock
		return err
	}
	q.dev.lock()
	defer q.dev.unlock()
	if to == driver.StateRTR {
		q.peer = string(attr.Peer)
		q.dev.provider.connected(q)
	}
	if q.state != driver.StateErr { // a fault may have broken it during Modify
		q.state = to
	}
	q.dev.progress()
	return nil
}

// stop takes the QP to ERR or RESET while nothing can be posted.
func (q *qp) stop(ctx context.Context, to driver.State, attr driver.Attr) error {
	q.dev.lock()
	defer q.dev.unlock()
	if err := q.QP.Modify(ctx, to, attr); err != nil {
		return err
	}
	q.state = to
	if to == driver.StateErr {
		q.flushWaiting()
		q.dev.progress()
		return nil
	}
	q.forget()
	q.sendCQ.purge(q.num)
	q.recvCQ.purge(q.num)
	q.life.Add(1)
	q.failed, q.flushing, q.blamed, q.cause, q.reported = false, false, 0, nil, false
	return nil
}

// forget drops all outstanding requests.
func (q *qp) forget() {
	for ; q.sends.Len() > 0; q.sends.Pop() {
		if q.sends.First().phase == started {
			q.sendCQ.below--
		}
	}
	q.owed, q.canceled = 0, 0
	q.recvs.forget()
}

// Close implements driver.QP. It drops held requests and completions.
func (q *qp) Close() error {
	q.dev.lock()
	if q.closed {
		q.dev.unlock()
		return nil
	}
	q.closed = true
	q.forget()
	q.sendCQ.leave(q)
	q.recvCQ.leave(q)
	q.dev.drop(q)
	q.dev.unlock()
	q.dev.provider.closed(q)
	return q.QP.Close()
}
