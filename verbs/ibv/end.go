//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// flushIfDue makes the next Poll flush the requests that were posted in ERR,
// once those before them have ended. Precondition: mu is held.
func (q *qp) flushIfDue(s *slots, c *completionQueue) {
	if s.owned == 0 && s.Len() > 0 && q.state == driver.StateErr {
		c.flushSoon()
	}
}

// flush ends requests that the device does not hold. It reports whether there
// are more than fit.
func (q *qp) flush(c *completionQueue, wc []driver.Completion) (n int, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state != driver.StateErr {
		return 0, false
	}
	take := func(s *slots, op driver.Opcode) {
		for ; s.owned == 0 && s.Len() > 0; s.drop(1) {
			if n == len(wc) {
				more = true
				return
			}
			sl := s.At(0)
			wc[n] = driver.Completion{ID: sl.id, Status: driver.Flushed, Op: sl.op, QP: q.num}
			if op != driver.OpRecv {
				q.blame(&wc[n])
			}
			n++
		}
	}
	if c == q.sendCQ {
		take(&q.sends, driver.OpSend)
	}
	if c == q.recvCQ {
		take(&q.recvs, driver.OpRecv)
	}
	return n, more
}

// toErr flushes outstanding requests.
func (q *qp) toErr() error {
	q.post.Lock()
	defer q.post.Unlock()
	if q.hw == nil {
		return driver.ErrClosed
	}
	q.mu.Lock()
	from := q.state
	q.state = driver.StateErr
	q.mu.Unlock()
	if from == driver.StateReset || from == driver.StateErr {
		return nil // devices refuse ERR from RESET; in ERR the flush has begun
	}
	return q.drain()
}

// breakDown drains a queue pair that the device or the watchdog found broken.
// It reports an event, except for a status that names a mistake of the program.
// It does nothing if the queue pair has been reset since.
func (q *qp) breakDown(incarnation uint32, status driver.Status, cause error) {
	q.post.Lock()
	current, life := q.hw != nil && q.isCurrent(incarnation), q.life
	if current {
		q.drain() //nolint:errcheck // the watchdog resets a queue pair that does not drain
	}
	q.post.Unlock()
	if !current {
		return
	}
	switch status {
	case driver.RetryExceeded, driver.Flushed, driver.GeneralError:
		if cause == nil {
			cause = fmt.Errorf("%w: the device moved the queue pair to ERR, as it does when it refuses a peer's request", driver.ErrAccess)
		}
		q.dev.announce(driver.AsyncEvent{Kind: driver.EventQPFatal, QP: q.num, Life: life, Err: cause})
	}
}

// isCurrent reports whether the queue pair was not reset since an incarnation.
func (q *qp) isCurrent(incarnation uint32) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.incarnation == incarnation
}

// drain makes the device flush, and posts the marker behind all requests. A
// second move to ERR is harmless; soft devices then flush receives that they
// had overlooked. Precondition: post is held, in ERR.
func (q *qp) drain() error {
	err := errors.Join(q.toDevice(C.IBV_QPS_ERR), q.markEnd())
	q.mu.Lock()
	outstanding := q.sends.owned+q.recvs.owned > 0
	q.watch = watch{}
	q.flushIfDue(&q.sends, q.sendCQ)
	q.flushIfDue(&q.recvs, q.recvCQ)
	q.mu.Unlock()
	if outstanding {
		q.dev.watchOver()
	}
	return err
}

// markEnd posts the marker behind the requests that the device holds, if there
// are any. The marker is a WRITE of no bytes, which needs neither address nor
// key. Precondition: post is held.
func (q *qp) markEnd() error {
	q.mu.Lock()
	needed := q.sends.owned > 0 && !q.marker
	q.marker = q.marker || needed
	id := requestID(q.incarnation, kindMarker, 0)
	q.mu.Unlock()
	if !needed {
		return nil
	}
	q.out.requests[0] = flatSend{id: C.uint64_t(id), op: C.IBV_WR_RDMA_WRITE, flags: C.IBV_SEND_SIGNALED}
	_, err := postSend(q.hw, q.out.requests[:1], nil)
	return wrap(err, "posting the marker")
}

// seize takes back the requests that the device does not flush: a queue pair in
// RESET touches no memory.
func (q *qp) seize() {
	q.lockPosts()
	defer q.unlockPosts()
	if q.hw == nil || q.getState() != driver.StateErr || q.clear() != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sends.owned, q.recvs.owned = 0, 0
	q.flushIfDue(&q.sends, q.sendCQ)
	q.flushIfDue(&q.recvs, q.recvCQ)
}
