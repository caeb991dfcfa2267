//go:build linux

package tcp

import (
	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// fill queues the frames of q that may leave, until the outbox has enough.
func (q *qp) fill() {
	for q.link.out.open() && q.round() {
	}
}

// round queues an acknowledgement, one response and one frame of a request, if they may
// leave. It reports whether there may be more.
func (q *qp) round() bool {
	q.putAck()
	responded := q.putResponse()
	return q.putRequest() && q.sq.framed < q.sq.Len() || responded
}

// put queues a frame without a payload, or the header of a frame with one.
func (q *qp) put(f *frame) {
	f.stream = q.stream.id
	q.link.out.put(f)
}

func (q *qp) putAck() {
	if !q.ackDue || !q.link.out.fits(headerSizes[kindAck], bufferMax) {
		return
	}
	q.ackDue = false
	q.rq.advertised = q.rq.posted
	q.put(&frame{kind: kindAck, seq: q.done, credits: q.rq.posted})
}

// putResponse queues one frame of the oldest owed response.
func (q *qp) putResponse() bool {
	a := q.responses.First()
	if a == nil || !q.link.out.fits(maxHeader+copyMax, bufferMax) {
		return false
	}
	switch a.kind {
	case kindNak:
		q.linger(errRegionClosed)
		q.put(&frame{kind: kindNak, op: uint8(a.status), seq: a.seq})
	case kindValue:
		q.put(&frame{kind: kindValue, value: a.value})
	case kindData:
		if a.body != nil {
			if !q.putFromBody(a) {
				return true
			}
			break
		}
		n := min(len(a.mem), maxPayload)
		f := frame{kind: kindData, length: uint32(n)}
		if n == len(a.mem) {
			f.flags = flagLast
		}
		q.put(&f)
		q.putPayload(piece{mem: a.mem[:n:n], q: q, mr: a.mr})
		if a.mem = a.mem[n:]; f.flags == 0 {
			return true
		}
	}
	q.responses.Pop()
	return true
}

// putPayload copies a small payload and refers to a large one. Aligned words are
// loaded whole, since the target's program may be storing them, and payloads in order.
func (q *qp) putPayload(p piece) {
	atomics.AcquireRelease()
	n := len(p.mem)
	switch {
	case n > copyMax || !q.link.out.fits(n, bufferMax):
		q.link.out.refer(p)
	case n <= driver.WholeRead && areWords(p.mem):
		atomics.LoadWords(q.link.out.extend(n), p.mem)
	default:
		copy(q.link.out.extend(n), p.mem)
	}
}

// putRequest queues one frame of the next request, if it may start.
func (q *qp) putRequest() bool {
	r := q.sq.next()
	if r == nil || q.state != driver.StateRTS || !q.mayStart(r) {
		return false
	}
	if r.dropped {
		return q.putDropped(r)
	}
	switch {
	case r.Op == driver.OpAccumulate:
		return q.putAccumulate(r)
	case r.Op == driver.OpWriteBlocks || r.Op == driver.OpReadBlocks:
		return q.putBlocks(r)
	case r.hasResponse() || r.Op == driver.OpAtomic:
		return q.putQuestion(r)
	}
	return q.putOutgoing(r)
}

// mayStart reports whether fences, credits and the number of reads let r start.
func (q *qp) mayStart(r *request) bool {
	if r.stage != stageQueued || r.dropped {
		return true
	}
	if r.Flags&driver.Fence != 0 && q.sq.reads.Len() > 0 || r.hasResponse() && q.sq.reads.Len() == maxReads {
		return false
	}
	return !r.consumes() || q.sq.consumed < q.sq.credits
}

// putDropped skips a canceled request. If the peer has its front, putDropped queues an
// ABORT. Else the peer never acknowledges the request, and its slot is free now.
func (q *qp) putDropped(r *request) bool {
	if r.stage == stageQueued {
		r.stage = stageDone
		q.sq.framed++
		q.retire()
		return true
	}
	if !q.link.out.fits(headerSizes[kindAbort], requestRoom) {
		return false
	}
	q.put(&frame{kind: kindAbort, flags: flagLast | q.wantAck(r.Flags)})
	if r.consumes() {
		q.sq.consumed--
	}
	q.sq.passed(r)
	return true
}

// wantAck returns flagWantAck for a signaled request, and often enough for unsignaled ones to
// free their slots.
func (q *qp) wantAck(flags driver.Flags) uint8 {
	if flags&driver.Signaled == 0 && q.sq.seq+1-q.sq.ackWanted < uint64(q.sq.Depth()+3)/4 {
		return 0
	}
	q.sq.ackWanted = q.sq.seq + 1
	return flagWantAck
}

// putOutgoing queues the next frame of a WRITE, WRITE_WITH_IMM or SEND.
func (q *qp) putOutgoing(r *request) bool {
	n := min(r.length-r.Sent, maxPayload)
	f := frame{kind: kindWrite, length: uint32(n)}
	switch r.Op {
	case driver.OpSend:
		f.kind = kindSend
	case driver.OpWriteImm:
		f.kind, f.imm = kindWriteImm, r.Imm
	}
	need, copied := headerSizes[f.kind], r.copied()
	if copied {
		need += n
	}
	if !q.link.out.fits(need, requestRoom) {
		return false
	}
	if r.stage == stageQueued && r.consumes() {
		q.sq.consumed++
	}
	f.addr, f.key = r.Remote.Addr+uint64(r.Sent), r.Remote.RKey
	if r.Sent+n == r.length {
		f.flags = flagLast | q.wantAck(r.Flags)
	}
	q.put(&f)
	q.gather(r, n, copied)
	r.stage = stageFramed
	if r.Sent += n; r.Sent == r.length {
		q.sq.passed(r)
	}
	return true
}

// gather queues the next n bytes of r's segments.
func (q *qp) gather(r *request, n int, copied bool) {
	var into []byte
	if copied {
		into = q.link.out.extend(n)
	}
	skip := r.Sent
	for i := 0; n > 0; i++ {
		m := r.Local[i].Mem
		if skip >= len(m) {
			skip -= len(m)
			continue
		}
		m = m[skip:]
		m = m[:min(n, len(m)):len(m)]
		if copied {
			into = into[copy(into, m):]
		} else {
			q.link.out.refer(piece{mem: m, q: q, req: r})
		}
		n, skip = n-len(m), 0
	}
}
