//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import (
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// PostRecv hands receives to the device in chains. In ERR they stay in the
// provider's own queue, since soft devices would keep them.
func (q *qp) PostRecv(wrs []driver.RecvRequest) (int, error) {
	q.recvPost.Lock()
	defer q.recvPost.Unlock()
	done := 0
	for done < len(wrs) {
		n, err := q.postRecvChain(wrs[done:])
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// postRecvChain posts as many receives as fit in one chain. It takes back the slots of receives
// that the device refused.
func (q *qp) postRecvChain(wrs []driver.RecvRequest) (int, error) {
	n, segments, err := q.admitRecv(wrs)
	if n == 0 || segments < 0 {
		return n, err
	}
	taken, err := postRecv(q.hw, q.in.requests[:n], q.in.segments[:segments])
	if taken < n {
		q.mu.Lock()
		q.recvs.untake(n - taken)
		q.mu.Unlock()
	}
	return taken, postError(err)
}

// admitRecv takes slots for receives and builds their chain. In ERR the device gets none: segments
// is -1, and the receives are flushed.
func (q *qp) admitRecv(wrs []driver.RecvRequest) (n, segments int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.hw == nil:
		return 0, 0, driver.ErrClosed
	case !wq.TakesReceives(q.state):
		return 0, 0, fmt.Errorf("%w: %v; receives can be posted from INIT on", driver.ErrState, q.state)
	case q.state == driver.StateErr:
		n = min(len(wrs), q.recvs.Room())
		for i := range wrs[:n] {
			*q.recvs.Push() = slot{id: wrs[i].ID, op: driver.OpRecv}
		}
		q.flushIfDue(&q.recvs, q.recvCQ)
		segments = -1
	default:
		n, segments, err = q.recvChain(wrs)
	}
	if n == 0 && err == nil {
		err = driver.ErrQueueFull
	}
	return n, segments, err
}

// recvChain builds a chain of as many receives as fit. It ends ahead of one with too many segments,
// which the next call refuses.
func (q *qp) recvChain(wrs []driver.RecvRequest) (n, segments int, err error) {
	most := min(len(wrs), len(q.in.requests), q.recvs.Room())
	for ; n < most; n++ {
		wr := &wrs[n]
		if len(wr.Local) > len(q.in.segments)-segments {
			err = fmt.Errorf("%w: %d segments", driver.ErrInvalid, len(wr.Local))
			break
		}
		r := &q.in.requests[n]
		*r = flatRecv{id: C.uint64_t(requestID(q.incarnation, kindRecv, q.recvs.next()))}
		for _, s := range wr.Local {
			if len(s.Mem) == 0 {
				continue
			}
			q.in.segments[segments] = flatSegment{addr: C.uint64_t(addressOf(s.Mem)), length: C.uint32_t(len(s.Mem)), lkey: C.uint32_t(s.LKey.Lo)}
			segments++
			r.segments++
		}
		*q.recvs.Push() = slot{id: wr.ID, op: driver.OpRecv}
		q.recvs.owned++
	}
	if n > 0 {
		err = nil // the next chain returns the error again
	}
	return n, segments, err
}
