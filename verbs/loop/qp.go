package loop

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// defaultTimeout bounds how long requests wait for a peer that has not
// connected.
const defaultTimeout = 10 * time.Second

// qp is one end of a connection.
//
// Locks: mu before the peer's recvMu. No goroutine holds mu while it takes a peer's
// mu: an aftermath notes what must be done to the peer once mu is released.
type qp struct {
	ctx            *loopContext
	num            uint32
	addr           address
	sendCQ, recvCQ *cq

	state   atomic.Uint32 // changed under mu; peers read it
	life    wq.Life
	peer    atomic.Pointer[qp]
	waiting atomic.Bool // the peer's send queue waits for a change of this end

	mu      sync.Mutex
	closed  bool
	timeout time.Duration
	timer   *time.Timer // runs while sends wait for the peer to connect
	sends   wq.SendQueue

	recvMu sync.Mutex
	recvs  wq.RecvQueue
}

func (q *qp) Num() uint32            { return q.num }
func (q *qp) Address() []byte        { return append([]byte(nil), q.addr[:]...) }
func (q *qp) is(s driver.State) bool { return q.state.Load() == uint32(s) }

// aftermath lists what must be done once mu is released.
type aftermath struct {
	own, peer bool  // ring the bells
	kick      *qp   // drain its send queue
	lose      *qp   // break its end of the connection
	cause     error // of lose
}

// settle rings bells and continues the peer's requests. Precondition: the caller holds no lock of a
// queue pair.
func (a *aftermath) settle(q *qp, peer *qp) {
	if a.own {
		q.ctx.bell.Ring()
	}
	if a.peer && peer != nil {
		peer.ctx.bell.Ring()
	}
	if a.kick != nil {
		a.kick.kick()
	}
	if a.lose != nil {
		a.lose.lost(q, a.cause)
	}
}

// Modify makes a transition. It wakes and continues the peer once q's lock is released.
func (q *qp) Modify(_ context.Context, to driver.State, attr driver.Attr) error {
	peer := q.peer.Load()
	if to == driver.StateRTR {
		var err error
		if peer, err = q.ctx.provider.find(attr.Peer); err != nil {
			return err
		}
	}
	var after aftermath
	q.mu.Lock()
	err := q.modify(to, attr, peer, &after)
	q.mu.Unlock()
	after.settle(q, peer)
	return err
}

// modify makes the transition under q's lock.
func (q *qp) modify(to driver.State, attr driver.Attr, peer *qp, after *aftermath) error {
	if q.closed {
		return driver.ErrClosed
	}
	if err := wq.Transition(driver.State(q.state.Load()), to); err != nil {
		return err
	}
	switch to {
	case driver.StateReset:
		q.reset()
		after.kick = q.waitingPeer(peer)
	case driver.StateErr:
		q.fail(driver.Flushed, nil, after)
	case driver.StateRTR:
		q.peer.Store(peer)
		q.state.Store(uint32(to))
		after.kick = q.waitingPeer(peer)
	case driver.StateRTS:
		if q.timeout = attr.Timeout; q.timeout == 0 {
			q.timeout = defaultTimeout
		}
		q.state.Store(uint32(to))
		q.drain(after)
	default:
		q.state.Store(uint32(to))
	}
	return nil
}

func (q *qp) completeSend(wc driver.Completion) { q.push(q.sendCQ, &wc) }
func (q *qp) completeRecv(wc driver.Completion) { q.push(q.recvCQ, &wc) }

func (q *qp) push(cq *cq, wc *driver.Completion) {
	wc.QP = q.num
	cq.Push(wc, &q.life)
}

// waitingPeer returns the peer if its sends wait for a change of this end.
func (q *qp) waitingPeer(peer *qp) *qp {
	if peer != nil && q.waiting.Swap(false) {
		return peer
	}
	return nil
}

// reset forgets the connection and all requests. Completions that were not polled are dropped.
func (q *qp) reset() {
	q.state.Store(uint32(driver.StateReset))
	q.peer.Store(nil)
	q.stopTimer()
	q.sends.Clear()
	q.recvMu.Lock()
	q.recvs.Clear()
	q.recvMu.Unlock()
	q.life.End()
}

// fail moves the QP to ERR. The oldest send in the queue completes with status and
// cause, all other requests with Flushed.
func (q *qp) fail(status driver.Status, cause error, after *aftermath) {
	q.state.Store(uint32(driver.StateErr))
	q.stopTimer()
	q.sends.Flush(status, cause, q.completeSend)
	q.recvMu.Lock()
	q.recvs.Flush(q.completeRecv)
	q.recvMu.Unlock()
	after.own = true
	after.kick = q.waitingPeer(q.peer.Load())
}

// lost breaks this end because its peer, from, is gone.
func (q *qp) lost(from *qp, cause error) {
	var after aftermath
	q.mu.Lock()
	broken := q.peer.Load() == from && q.connected() && !q.closed
	if broken {
		q.fail(driver.RetryExceeded, cause, &after)
	}
	life := q.life.Now()
	q.mu.Unlock()
	after.settle(q, from)
	if broken {
		q.ctx.event(driver.AsyncEvent{Kind: driver.EventQPFatal, QP: q.num, Life: life, Err: cause})
	}
}

// connected reports whether the QP takes requests of its peer.
func (q *qp) connected() bool {
	s := driver.State(q.state.Load())
	return s == driver.StateRTR || s == driver.StateRTS || s == driver.StateSQD
}

// Close breaks the peer's end too, so that the peer does not wait forever.
func (q *qp) Close() error {
	q.mu.Lock()
	closed, peer := q.closed, q.peer.Load()
	if !closed {
		q.closed = true
		q.state.Store(uint32(driver.StateErr))
		q.stopTimer()
		q.sends.Clear()
		q.recvMu.Lock()
		q.recvs.Clear()
		q.recvMu.Unlock()
	}
	q.mu.Unlock()
	if closed {
		return nil
	}
	q.ctx.provider.detach(q)
	q.ctx.forget(q)
	if peer != nil {
		peer.lost(q, fmt.Errorf("%w: the peer closed its end", driver.ErrLost))
	}
	return nil
}
