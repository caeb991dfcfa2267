package loop

import (
	"fmt"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
)

// verdict names the end of an attempt to carry a request out.
type verdict uint8

const (
	done        verdict = iota
	failed              // the QP goes to ERR
	unready             // the peer has posted no receive
	unconnected         // the peer has not connected yet
)

// outcome is a verdict with the contents of the completion.
type outcome struct {
	verdict verdict
	status  driver.Status
	bytes   int
	err     error
	touched bool // the peer's memory or CQ: ring its bell
}

// PostSend carries the requests out, or queues them behind one that waits.
func (q *qp) PostSend(wrs []driver.WorkRequest) (int, error) {
	var after aftermath
	q.mu.Lock()
	n, err := len(wrs), error(nil)
	for i := range wrs {
		if err = q.post(&wrs[i], &after); err != nil {
			n = i
			break
		}
	}
	peer := q.peer.Load()
	q.mu.Unlock()
	after.settle(q, peer)
	return n, err
}

// post carries out one request, or queues it behind one that waits. after collects the work that is due
// once the lock is released.
func (q *qp) post(wr *driver.WorkRequest, after *aftermath) error {
	switch {
	case q.closed:
		return driver.ErrClosed
	case q.is(driver.StateErr):
		q.completeSend(driver.Completion{ID: wr.ID, Status: driver.Flushed, Op: wr.Op})
		after.own = true
		return nil
	case q.sends.Len() > 0 || !q.is(driver.StateRTS):
		_, err := q.sends.Push(wr)
		return err
	}
	out := q.attempt(wr)
	if out.verdict == done {
		q.complete(wr, &out, after)
		return nil
	}
	if _, err := q.sends.Push(wr); err != nil {
		return err
	}
	q.stuck(&out, after)
	return nil
}

// drain carries out the queued requests in order, up to the first that must wait.
func (q *qp) drain(after *aftermath) {
	for q.is(driver.StateRTS) {
		r := q.sends.First()
		if r == nil {
			break
		}
		out := q.attempt(&r.WorkRequest)
		if out.verdict != done {
			q.stuck(&out, after)
			return
		}
		if r.Canceled {
			r.Flags &^= driver.Signaled
		}
		q.complete(&r.WorkRequest, &out, after)
		q.sends.Pop()
	}
	q.stopTimer()
}

// kick drains the queue. The peer calls it after a change of its own.
func (q *qp) kick() {
	var after aftermath
	q.mu.Lock()
	q.drain(&after)
	peer := q.peer.Load()
	q.mu.Unlock()
	after.settle(q, peer)
}

// complete pushes the completion of a request that succeeded, if it is signaled. The bells of after
// ring once no lock is held.
func (q *qp) complete(wr *driver.WorkRequest, out *outcome, after *aftermath) {
	if out.touched {
		after.peer = true
	}
	if wr.Flags&driver.Signaled != 0 {
		q.completeSend(driver.Completion{ID: wr.ID, Op: wr.Op, Bytes: out.bytes})
		after.own = true
	}
}

// stuck handles the oldest request after an attempt that failed.
func (q *qp) stuck(out *outcome, after *aftermath) {
	switch out.verdict {
	case failed:
		q.fail(out.status, out.err, after)
		if out.status != driver.RetryExceeded { // the target refused: its queue pair breaks too
			after.lose, after.cause = q.peer.Load(), out.err
		}
	case unconnected:
		q.startTimer()
	case unready:
		q.stopTimer()
	}
}

// attempt carries a request out if the peer is ready for it.
func (q *qp) attempt(wr *driver.WorkRequest) outcome {
	p := q.peer.Load()
	if out := q.reach(p); out.verdict != done {
		if out.verdict == failed {
			return out
		}
		p.waiting.Store(true)
		if out = q.reach(p); out.verdict != done { // the peer may have changed before it could see waiting
			return out
		}
	}
	switch wr.Op {
	case driver.OpWrite:
		return write(p, wr)
	case driver.OpWriteImm, driver.OpSend:
		return q.deliver(p, wr)
	case driver.OpRead:
		return read(p, wr)
	case driver.OpAccumulate:
		return accumulate(p, wr)
	case driver.OpWriteBlocks:
		return writeBlocks(p, wr)
	case driver.OpReadBlocks:
		return readBlocks(p, wr)
	default:
		return update(p, wr)
	}
}

// reach reports whether p takes requests from q.
func (q *qp) reach(p *qp) outcome {
	switch driver.State(p.state.Load()) {
	case driver.StateReset, driver.StateInit:
		return outcome{verdict: unconnected}
	case driver.StateErr:
		return gone("its queue pair is in ERR or closed")
	}
	if p.peer.Load() != q {
		return gone("it is connected to another queue pair")
	}
	return outcome{}
}

func gone(why string) outcome {
	return outcome{verdict: failed, status: driver.RetryExceeded,
		err: fmt.Errorf("%w: the peer does not respond, %s", driver.ErrLost, why)}
}

func (q *qp) startTimer() {
	if q.timer != nil {
		return
	}
	var own *time.Timer
	own = time.AfterFunc(q.timeout, func() { q.expire(&own) })
	q.timer = own
}

func (q *qp) stopTimer() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// expire breaks the connection, unless the timer has been stopped.
func (q *qp) expire(own **time.Timer) {
	var after aftermath
	q.mu.Lock()
	cause := fmt.Errorf("%w: the peer has not connected within %v", driver.ErrLost, q.timeout)
	expired := q.timer != nil && q.timer == *own
	if expired {
		q.fail(driver.RetryExceeded, cause, &after)
	}
	peer, life := q.peer.Load(), q.life.Now()
	q.mu.Unlock()
	after.settle(q, peer)
	if expired {
		q.ctx.event(driver.AsyncEvent{Kind: driver.EventQPFatal, QP: q.num, Life: life, Err: cause})
	}
}

// PostRecv queues receives and drains the send queue of a peer that waits for
// one.
func (q *qp) PostRecv(wrs []driver.RecvRequest) (int, error) {
	q.recvMu.Lock()
	n, err := len(wrs), error(nil)
	flushed := q.is(driver.StateErr)
	for i := range wrs {
		if flushed {
			q.completeRecv(driver.Completion{ID: wrs[i].ID, Status: driver.Flushed, Op: driver.OpRecv})
		} else if err = q.recvs.Push(&wrs[i]); err != nil {
			n = i
			break
		}
	}
	q.recvMu.Unlock()
	if flushed {
		q.ctx.bell.Ring()
	}
	if peer := q.waitingPeer(q.peer.Load()); peer != nil {
		peer.kick()
	}
	return n, err
}

// Cancel ends the request if it still waits in its queue. A request that was carried
// out has been completed already.
func (q *qp) Cancel(id uint64) {
	var after aftermath
	q.mu.Lock()
	if op, ok := q.sends.Cancel(id); ok {
		q.completeSend(driver.Completion{ID: id, Status: driver.Canceled, Op: op})
		after.own = true
		q.drain(&after)
	}
	q.recvMu.Lock()
	if q.recvs.Cancel(id) {
		q.completeRecv(driver.Completion{ID: id, Status: driver.Canceled, Op: driver.OpRecv})
		after.own = true
	}
	q.recvMu.Unlock()
	peer := q.peer.Load()
	q.mu.Unlock()
	after.settle(q, peer)
}
