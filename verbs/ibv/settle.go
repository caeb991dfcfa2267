//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import "github.com/gopgas/gopgas/verbs/driver"

// settle turns a device's completion into a driver's, and reports whether there is one.
// It drops successes of unsignaled requests and completions of an earlier incarnation.
func (q *qp) settle(raw *flatCompletion, wc *driver.Completion) bool {
	incarnation, k, seq := splitID(uint64(raw.id))
	q.mu.Lock()
	if incarnation != q.incarnation {
		q.mu.Unlock()
		return false
	}
	told, broke := false, false
	switch k {
	case kindMarker:
		q.marked()
		broke = raw.status != C.IBV_WC_SUCCESS
		*wc = driver.Completion{Status: statusOf(raw)}
	case kindRecv:
		told = q.settleRecv(raw, seq, wc)
	default:
		told = q.settleSend(raw, seq, wc)
	}
	broke = (broke || told && wc.Status != driver.Success) && q.state != driver.StateErr
	if broke {
		q.state = driver.StateErr
	}
	q.mu.Unlock()
	if broke {
		q.breakDown(incarnation, wc.Status, wc.Err)
	}
	return told
}

// settleSend turns a completion of the device into one of the program, and frees the slots up to
// its request. It returns false if the program gets none: of an unsignaled request, or of one that
// a reset has dropped.
func (q *qp) settleSend(raw *flatCompletion, seq uint32, wc *driver.Completion) bool {
	older, ok := q.sends.find(seq)
	if !ok {
		return false
	}
	sl := *q.sends.At(older) // the older ones were unsignaled and succeeded
	q.sends.drop(older + 1)
	q.flushIfDue(&q.sends, q.sendCQ)
	status := sendStatus(raw, sl.op)
	if status == driver.Success && !sl.signaled {
		return false
	}
	*wc = driver.Completion{ID: sl.id, Status: status, Op: sl.op, QP: q.num}
	switch status {
	case driver.Success:
		if sl.op == driver.OpRead {
			wc.Bytes = sl.bytes
		}
	case driver.Flushed:
		q.blame(wc)
	default:
		wc.Err = q.explain(status, raw)
		q.cause = driver.Success
	}
	return true
}

// settleRecv is settleSend for a receive.
func (q *qp) settleRecv(raw *flatCompletion, seq uint32, wc *driver.Completion) bool {
	older, ok := q.recvs.find(seq)
	if !ok {
		return false
	}
	*wc = driver.Completion{ID: q.recvs.At(older).id, Status: recvStatus(raw), Op: driver.OpRecv, QP: q.num}
	q.recvs.drop(older + 1)
	q.flushIfDue(&q.recvs, q.recvCQ)
	switch wc.Status {
	case driver.Success:
	case driver.Flushed:
		return true
	default:
		wc.Err = q.explain(wc.Status, raw)
		return true
	}
	wc.Bytes = int(raw.bytes)
	if raw.op == C.IBV_WC_RECV_RDMA_WITH_IMM {
		wc.Op = driver.OpRecvImm
	}
	if raw.has_imm != 0 {
		wc.HasImm, wc.Imm = true, uint32(raw.imm)
	}
	return true
}

// blame gives a flushed request the cause that the provider found, once.
func (q *qp) blame(wc *driver.Completion) {
	if q.cause != driver.Success {
		wc.Status, wc.Err = q.cause, q.causeErr
		q.cause, q.causeErr = driver.Success, nil
	}
}

// marked takes the marker's completion: the device has ended all sends before
// it. Sends without a completion were unsignaled and succeeded.
func (q *qp) marked() {
	n := 0
	for n < q.sends.owned && !q.sends.At(n).signaled {
		n++
	}
	q.sends.drop(n)
	q.sends.owned, q.marker = 0, false
	q.flushIfDue(&q.sends, q.sendCQ)
}
