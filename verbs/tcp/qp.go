//go:build linux

package tcp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// A qp is one queue pair. Its lock guards everything but the fields that never change.
//
// Locks: the device's token before it, those of completion queues and of the table of
// regions after it. See lock.
type qp struct {
	dev            *device
	num            uint32
	apart          bool // needs a connection of its own
	sendCQ, recvCQ *completionQueue

	own      sync.Mutex
	mu       atomic.Pointer[sync.Mutex] // its own, or that of its latest path
	state    driver.State
	life     wq.Life
	closed   bool
	secret   token
	peer     address
	timeout  time.Duration // without a sign of life
	link     *link         // established, or nil; the token guards changes of it and of the next fields:
	stream   *stream       // of link, or that this side has requested, or nil
	openings []*stream     // of dialers that claim to be the peer, at an acceptor
	path     *path         // to the peer's device, or nil
	timer    *time.Timer   // gives up
	tell     func()        // driver.Attr.Established, until the call

	sq        sendQueue // this side as origin
	rq        recvQueue // this side as target, and below
	responses responses
	pending   kind    // kind of the peer's request without its last frame yet, or 0
	message   int     // payload bytes of that request so far
	done      uint64  // requests of the peer that were applied
	latest    *region // that a request of the peer named, or nil
	ackDue    bool
	dirty     bool // in the device's list of queue pairs to flush
}

// CreateQP makes a queue pair in RESET.
func (d *device) CreateQP(_ context.Context, cfg driver.QPConfig) (driver.QP, error) {
	q := &qp{
		dev: d, apart: cfg.Apart, sendCQ: cfg.SendCQ.(*completionQueue), recvCQ: cfg.RecvCQ.(*completionQueue),
		secret: newToken(), timeout: d.timeout,
		sq: newSendQueue(cfg.SendDepth, cfg.MaxSegments), responses: newResponses(),
		rq: recvQueue{RecvQueue: wq.NewRecvQueue(cfg.RecvDepth, cfg.MaxSegments)},
	}
	q.mu.Store(&q.own)
	if err := d.addQP(q); err != nil {
		return nil, err
	}
	return q, nil
}

func (q *qp) Num() uint32 { return q.num }

// Address returns the address, which holds this incarnation's secret; a reset makes a
// new one.
func (q *qp) Address() []byte {
	q.lock()
	defer q.unlock()
	return (&address{qp: q.num, token: q.secret, device: q.dev.id, endpoints: q.dev.endpoints, tls: q.dev.tls != nil}).encode()
}

// Modify changes the state. No transition waits for the peer: one side of a pair dials
// in the background, and requests queue until it is connected.
func (q *qp) Modify(ctx context.Context, to driver.State, attr driver.Attr) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	q.dev.token.Lock()
	defer q.dev.leave()
	q.lock()
	defer q.unlock()
	if q.closed {
		return driver.ErrClosed
	}
	if err := wq.Transition(q.state, to); err != nil {
		return err
	}
	switch to {
	case driver.StateReset:
		q.reset()
	case driver.StateRTR:
		q.tell = attr.Established
		return q.connect(attr.Peer)
	case driver.StateRTS:
		q.start(attr.Timeout)
	case driver.StateErr:
		q.fail(driver.Flushed, nil)
		q.disconnect()
	default:
		q.state = to
	}
	return nil
}

// reset forgets peer, requests and completions. Precondition: token and q's lock are
// held.
func (q *qp) reset() {
	q.disconnect()
	q.sq.reset()
	q.rq.Clear()
	q.rq.reconnect()
	q.responses.clear()
	q.done, q.ackDue, q.latest, q.tell = 0, false, nil, nil
	q.peer, q.secret = address{}, newToken()
	q.state = driver.StateReset
	q.life.End()
}

func (q *qp) completeSend(wc driver.Completion) { q.push(q.sendCQ, &wc) }
func (q *qp) completeRecv(wc driver.Completion) { q.push(q.recvCQ, &wc) }

func (q *qp) push(cq *completionQueue, wc *driver.Completion) {
	wc.QP = q.num
	cq.Push(wc, &q.life)
}

// start opens the send queue.
func (q *qp) start(timeout time.Duration) {
	q.state = driver.StateRTS
	if timeout > 0 {
		q.timeout = timeout
	}
	if q.link != nil {
		q.link.guard()
	}
	q.flush()
}

// fail ends all outstanding requests: the oldest with first and cause, all later ones
// and all receives with Flushed. The caller ends the connection.
func (q *qp) fail(first driver.Status, cause error) {
	// Frames of the requests may still leave after their memory is the caller's again.
	if q.link != nil {
		q.link.out.detach(func(p *piece) bool { return p.q == q && p.req != nil })
	}
	for ; q.sq.Len() > 0; q.sq.Pop() {
		if r := q.sq.First(); !r.Canceled {
			r.each(func() {
				q.completeSend(driver.Completion{ID: r.ID, Op: r.Op, Status: first, Err: cause})
				first, cause = driver.Flushed, nil
			})
		}
	}
	q.rq.Flush(q.completeRecv)
	q.sq.reset()
	q.state = driver.StateErr
}

// failReceive ends the receive in use with status.
func (q *qp) failReceive(status driver.Status) {
	q.completeRecv(driver.Completion{ID: q.rq.First().ID, Op: driver.OpRecv, Status: status})
	q.rq.Pop()
}

// broke fails q because its connection is over or cannot be made, and reports
// EventQPFatal.
func (q *qp) broke(cause, news error) {
	if q.state == driver.StateErr || q.state == driver.StateReset {
		return
	}
	q.fail(driver.RetryExceeded, cause)
	q.dev.announce(driver.AsyncEvent{Kind: driver.EventQPFatal, QP: q.num, Life: q.life.Now(), Err: news})
}

// lost breaks q because its established connection is over.
func (q *qp) lost(cause error) {
	cause = lost(cause)
	q.broke(cause, cause)
}

// linger moves q to ERR but keeps its stream until the peer has the NAK and leaves it. It
// discards all other frames of the stream.
func (q *qp) linger(cause error) {
	if q.state == driver.StateErr {
		return
	}
	q.link.in.release(q)
	q.fail(driver.Flushed, cause)
	q.dev.announce(driver.AsyncEvent{Kind: driver.EventQPFatal, QP: q.num, Life: q.life.Now(), Err: cause})
}

// Close destroys the queue pair. Outstanding requests do not complete. It is
// idempotent.
func (q *qp) Close() error {
	q.dev.token.Lock()
	defer q.dev.leave()
	q.lock()
	defer q.unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	q.reset()
	q.dev.removeQP(q)
	return nil
}
