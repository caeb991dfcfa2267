//go:build linux

package tcp

import (
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// The target's part of a request. A link calls it in the goroutine that makes progress, under the queue pair's lock:
//
//	header is there    open           where does the payload go?   refused: NAK
//	payload is there   finish         apply the request, and owe its response or acknowledgement
//	short WRITE        applyShort     both at once
//	closed region      revoke         refuse what its responses would send
//
// link.flush sends what is owed.

// A response holds bytes, a value or a refusal that the target owes the origin.
type response struct {
	kind   kind // kindData, kindValue or kindNak
	status driver.Status
	seq    uint64
	value  uint64
	mem    []byte // kindData: bytes still to be sent
	mr     *region
	body   *body // holds mem, if not nil
}

// responses holds the owed responses in order. Its size bounds how much a peer can make this
// side keep.
type responses struct{ wq.Ring[response] }

func newResponses() responses { return responses{wq.NewRing[response](maxReads + 1)} }

// Pop drops the oldest response and forgets its memory.
func (a *responses) Pop() {
	*a.First() = response{}
	a.Ring.Pop(1)
}

// clear drops all responses: the connection is over.
func (a *responses) clear() {
	for a.Len() > 0 {
		a.Pop()
	}
}

// revoke turns the responses to READs of a closed region into refusals.
func (a *responses) revoke(r *region) {
	for i := range a.Len() {
		if x := a.At(i); x.mr == r {
			*x = response{kind: kindNak, status: driver.RemoteAccess, seq: x.seq}
		}
	}
}

// open sets the destination of the payload in reception. It sends a NAK for a refusal;
// an error means that the peer broke the protocol.
func (q *qp) open(f *frame) error {
	in := &q.link.in
	if err := q.sequence(f); err != nil {
		return err
	}
	in.late = false
	switch f.kind {
	case kindWrite, kindWriteImm:
		if f.kind == kindWriteImm && f.last() && !q.mayConsume() {
			return fmt.Errorf("%w: WRITE_WITH_IMM without a receive", errProtocol)
		}
		mr, mem, status := q.locate(f, driver.RemoteWrite)
		switch {
		case status == driver.Success:
			in.mr = mr
			in.to.into(mem)
		case q.dev.late(f):
			in.late = true
			in.to.drop()
		default:
			q.refuse(status)
		}
	case kindSend:
		return q.openSend(f)
	case kindData:
		return q.openData(f)
	case kindAccumulate:
		q.openAccumulate(f)
	case kindWriteBlocks, kindReadBlocks:
		q.openBody(f.bodySize)
	}
	return nil
}

// sequence checks that the frames of one request follow each other.
func (q *qp) sequence(f *frame) error {
	if f.kind > kindAbort {
		return nil // a response, which may arrive in between
	}
	if q.pending != 0 && f.kind != q.pending && f.kind != kindAbort || q.pending == 0 && f.kind == kindAbort {
		return fmt.Errorf("%w: frame kind %d within a request of kind %d", errProtocol, f.kind, q.pending)
	}
	if !f.last() && f.kind <= kindSend {
		q.pending = f.kind
	}
	return nil
}

// openSend has the payload of a SEND go to the first posted receive. A message that is too long fails
// both ends.
func (q *qp) openSend(f *frame) error {
	if !q.mayConsume() {
		return fmt.Errorf("%w: SEND without a receive", errProtocol)
	}
	recv := q.rq.First()
	if f.bodySize > wq.Length(recv.Local)-q.message {
		q.failReceive(driver.LocalLength)
		q.refuse(driver.RemoteInvalid)
		return nil
	}
	q.link.in.to.scatter(recv.Local, q.message)
	return nil
}

// mayConsume reports whether a receive is posted of which the peer knows.
func (q *qp) mayConsume() bool { return q.rq.Len() > 0 && q.rq.consumed < q.rq.advertised }

// finish applies the frame in reception after its payload is complete.
func (q *qp) finish() error {
	in := &q.link.in
	f := &in.frame
	switch f.kind {
	case kindWrite, kindWriteImm, kindSend:
		if in.to.discard && !in.late { // the region was closed during reception
			q.refuse(driver.RemoteAccess)
			return nil
		}
		q.message += f.bodySize
		q.dev.note()
		if f.last() {
			q.arrived(f)
		}
	case kindAbort:
		q.message, q.pending = 0, 0
		q.applied(f)
	case kindRead:
		return q.applyRead(f)
	case kindAtomic:
		return q.applyAtomic(f)
	case kindAccumulate:
		return q.applyAccumulate(f)
	case kindWriteBlocks, kindReadBlocks:
		return q.applyBlocks(f)
	default:
		return q.applyResponse(f)
	}
	return nil
}

// applyShort applies a WRITE with its whole payload at once. It stores the last of
// aligned words atomically, after all words before it.
func (q *qp) applyShort(f *frame, payload []byte) error {
	if err := q.sequence(f); err != nil {
		return err
	}
	_, mem, status := q.locate(f, driver.RemoteWrite)
	switch {
	case status != driver.Success && !q.dev.late(f):
		q.refuse(status)
		return nil
	case len(mem) > 0 && areWords(mem):
		last := len(mem) - 8
		copy(mem, payload[:last])
		atomics.Word64(mem[last:]).Store(binary.NativeEndian.Uint64(payload[last:]))
	default:
		copy(mem, payload) // nothing, if the WRITE is late for a landing
	}
	q.dev.note()
	if f.last() {
		q.arrived(f)
	}
	return nil
}

// arrived ends a WRITE, WRITE_WITH_IMM or SEND.
func (q *qp) arrived(f *frame) {
	if f.kind != kindWrite {
		wc := driver.Completion{ID: q.rq.First().ID, Op: driver.OpRecv, Bytes: q.message}
		if f.kind == kindWriteImm {
			wc.Op, wc.HasImm, wc.Imm = driver.OpRecvImm, true, f.imm
		}
		q.rq.Pop()
		q.completeRecv(wc)
	}
	q.message, q.pending = 0, 0
	q.applied(f)
}

// applied counts a request, which the next acknowledgement reports.
func (q *qp) applied(f *frame) {
	q.done++
	if f.flags&flagWantAck != 0 {
		q.ackDue = true
	}
}

// applyRead checks a READ and owes its response: the bytes leave from the registered memory.
func (q *qp) applyRead(f *frame) error {
	mr, mem, status := q.locate(f, driver.RemoteRead)
	if status != driver.Success {
		q.refuse(status)
		return nil
	}
	a := response{kind: kindData, seq: q.done, mem: mem, mr: mr}
	q.done++
	return q.owe(a)
}

// applyAtomic carries out an ATOMIC, and owes the earlier value if the origin wants it.
func (q *qp) applyAtomic(f *frame) error {
	old, status := q.dev.atomic(f)
	if status != driver.Success {
		q.refuse(status)
		return nil
	}
	q.dev.note()
	seq := q.done
	q.applied(f)
	if f.flags&flagReply == 0 {
		return nil
	}
	return q.owe(response{kind: kindValue, seq: seq, value: old})
}

// owe adds a response. It is an error of the peer to have more READs outstanding than it agreed to.
func (q *qp) owe(a response) error {
	if q.responses.Len() >= maxReads {
		return fmt.Errorf("%w: more than %d reads outstanding", errProtocol, maxReads)
	}
	*q.responses.Push() = a
	return nil
}

// refuse sends a NAK with status for the request in reception. That ends this side's
// part of the connection as well.
func (q *qp) refuse(status driver.Status) {
	*q.responses.Push() = response{kind: kindNak, status: status, seq: q.done}
	q.linger(fmt.Errorf("%w: the peer's request ended with %v", driver.ErrAccess, status))
}
