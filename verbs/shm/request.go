//go:build linux

package shm

import (
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/internal/blocks"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// The peer's CPU carries out a request for heap memory, which this process cannot map. The request is a
// record in the ring, and the response is one or two records in the peer's ring:
//
//	this side                                           peer
//	execute -> orRequest -> request == recordRequest ==> receive -> respond -> Context.carryOut
//	receive -> takeResponse        <== recordResponse == putResponse
//
// Precondition of all methods of QP in this file: mu is held. The request has this layout:
//
//	 0  1  opcode: WRITE, READ, ATOMIC or ACCUMULATE
//	 1  1  atomic operation
//	 2  1  width
//	 3  1  1: the response has the earlier values
//	 4  4  bytes
//	 8  8  address    16 16 key    32 8 operand    40 8 compare
//	48     bytes to write, or operands
//
// A QP has one request under way. A longer transfer takes a request for each piece of it.
const requestHeader = 48

// A request is one to the peer's CPU, decoded.
type request struct {
	op               driver.Opcode
	atomic           driver.AtomicOp
	width            uint8
	fetch            bool
	bytes            uint32
	addr             uint64
	key              driver.Key
	operand, compare uint64
}

// encode writes the request to the first requestHeader bytes of b.
func (a *request) encode(b []byte) {
	clear(b[:requestHeader])
	b[0], b[1], b[2] = byte(a.op), byte(a.atomic), a.width
	if a.fetch {
		b[3] = 1
	}
	ne := binary.NativeEndian
	ne.PutUint32(b[4:], a.bytes)
	for i, word := range [...]uint64{a.addr, a.key.Hi, a.key.Lo, a.operand, a.compare} {
		ne.PutUint64(b[8+8*i:], word)
	}
}

// decodeRequest reads the first requestHeader bytes of b. It checks nothing: Context.carryOut does.
func decodeRequest(b []byte) (a request) {
	ne := binary.NativeEndian
	return request{op: driver.Opcode(b[0]), atomic: driver.AtomicOp(b[1]), width: b[2], fetch: b[3] != 0, bytes: ne.Uint32(b[4:]),
		addr: ne.Uint64(b[8:]), key: driver.Key{Hi: ne.Uint64(b[16:]), Lo: ne.Uint64(b[24:])}, operand: ne.Uint64(b[32:]), compare: ne.Uint64(b[40:])}
}

// orRequest goes on with wr, which a try on mapped memory ended with err: execute calls it behind each try.
// Another err than errHeap is final. With errHeap the memory lies in the peer's heap: the system copies
// the bytes, or the peer's CPU carries wr out. done is false while wr waits for the peer. sent counts the
// bytes that this side has requested.
func (q *QP) orRequest(wr *driver.WorkRequest, sent *int, err error) (done bool, _ error) {
	if err != errHeap { //nolint:errorlint // resolve returns it as it is
		return true, err
	}
	total := max(1, wr.Length()) // an atomic without a result has no bytes
	switch {
	case q.requested > 0: // the response to the last piece is to come
		return false, nil
	case *sent >= total: // it has come
		return true, nil
	case *sent == 0:
		if ok, err := q.copied(wr, total); ok || err != nil {
			return ok, err
		}
	}
	return false, q.request(wr, sent, total)
}

// request puts one for the next piece of wr into the ring, once there is room. It counts the
// bytes that it requested in sent.
func (q *QP) request(wr *driver.WorkRequest, sent *int, total int) error {
	a, out := requestOf(wr)
	at, left := *sent, total-*sent
	if len(wr.Runs) > 0 { // a request for each block
		at, left = blocks.Place(wr.Runs, *sent)
	}
	a.addr += uint64(at)
	n, err := q.requestRoom(left, out)
	if n == 0 || err != nil {
		return err
	}
	a.bytes = uint32(n)
	data := uint64(requestHeader)
	if out {
		data += uint64(n)
	}
	mem := q.out.data(q.out.lines, data)
	a.encode(mem)
	if out {
		wq.Gather(mem[requestHeader:], wr.Local, *sent)
	}
	*sent += n
	q.requested, q.got = n, 0
	q.publish(record{kind: recordRequest, last: true, bytes: data})
	return nil
}

// requestOf returns the request for all of wr, still without its bytes. out is true if bytes go to the peer.
func requestOf(wr *driver.WorkRequest) (a request, out bool) {
	a = request{addr: wr.Remote.Addr, key: wr.Remote.RKey, operand: wr.Operand, compare: wr.Compare,
		width: wr.Width, atomic: wr.Atomic, op: wr.Op, fetch: wr.Flags&driver.Fetch != 0}
	switch wr.Op {
	case driver.OpRead, driver.OpReadBlocks:
		a.op = driver.OpRead
		return a, false
	case driver.OpWrite, driver.OpWriteImm, driver.OpWriteBlocks:
		a.op = driver.OpWrite
		return a, true
	case driver.OpAccumulate:
		return a, true
	}
	op, width := wq.Atomic(wr)
	a.op, a.atomic, a.width, a.fetch = driver.OpAtomic, op, uint8(width), len(wr.Local) > 0
	return a, false
}

// requestRoom returns how many of n bytes the next request can name, 0 if the ring has no room. A
// record that carries bytes does not begin in the last lines of the ring: there it would be too
// short for an element.
func (q *QP) requestRoom(n int, out bool) (int, error) {
	most := int(min(q.out.size, q.remote.ring.size)/4) - requestHeader
	if n > most {
		n = most &^ (line - 1) // pieces begin at whole elements
	}
	free, err := q.room()
	if err != nil || free < 4 {
		return 0, err
	}
	if !out {
		return n, nil
	}
	rest := q.out.contiguous(q.out.lines)
	if rest <= 2*line {
		q.publish(record{kind: recordPad, last: true, bytes: rest - recordHeader})
		free, rest = free-rest/line, q.out.size
	}
	if most = int(min(free*line, rest)) - recordHeader - requestHeader; n > most {
		n = most &^ (line - 1)
	}
	return n, nil
}

// respond carries out a request of the peer, and puts the response into the ring. receive calls it in the
// goroutine that polls or serves this device.
func (q *QP) respond(rec record) error {
	n := int(rec.bytes)
	if n < requestHeader || !rec.last {
		return q.unlessReset(corrupt("a request of %d bytes", n))
	}
	if q.result == nil {
		q.result = make([]byte, q.out.size/4)
	}
	q.scratch = append(q.scratch[:0], q.remote.ring.data(q.read, rec.bytes)...) // the peer may change the original
	if q.peerReset() {
		return nil
	}
	a := decodeRequest(q.scratch)
	result, err := q.ctx.carryOut(&a, q.scratch[requestHeader:], q.result)
	status := driver.Success
	if err != nil {
		status, result = statusOf(err), nil
	}
	q.wakeSelf = true // goroutines here may wait for the memory
	return q.putResponse(status, result)
}

// putResponse puts a response into the ring. There is room: see [QP.room].
func (q *QP) putResponse(status driver.Status, result []byte) error {
	for {
		free, err := q.free()
		if err != nil {
			return err
		}
		if free == 0 {
			return corrupt("requests without regard to the responses")
		}
		n := min(uint64(len(result)), free*line-recordHeader, q.out.contiguous(q.out.lines)-recordHeader)
		copy(q.out.data(q.out.lines, n), result)
		result = result[n:]
		q.publish(record{kind: recordResponse, last: len(result) == 0, bytes: n, extra: uint64(status)})
		if len(result) == 0 {
			return nil
		}
	}
}

// takeResponse takes a piece of the response to the request that the first of sends waits for.
func (q *QP) takeResponse(rec record) error {
	first := q.sends.First()
	if q.requested == 0 || first == nil {
		return q.unlessReset(corrupt("a response without a request"))
	}
	if status := driver.Status(rec.extra); status != driver.Success {
		q.requested = 0
		q.toErr(status, fmt.Errorf("shm: %w: the peer refused a request for its heap: %v", driver.ErrAccess, status))
		return nil
	}
	left := -q.got
	if fills(&first.WorkRequest) {
		left += q.requested
	}
	if rec.bytes > uint64(left) || rec.last && rec.bytes != uint64(left) {
		return q.unlessReset(corrupt("a response of %d bytes, of which %d lack", rec.bytes, left))
	}
	at := first.Sent - q.requested + q.got
	wq.Scatter(first.Local, at, q.remote.ring.data(q.read, rec.bytes))
	if q.peerReset() {
		return fail(driver.RetryExceeded, fmt.Errorf("%w: the peer reset its QP within a response", driver.ErrLost))
	}
	if q.got += int(rec.bytes); rec.last {
		q.requested, q.got = 0, 0
	}
	return nil
}

// fills reports whether the response to a request fills the request's segments.
func fills(wr *driver.WorkRequest) bool {
	switch wr.Op {
	case driver.OpWrite, driver.OpWriteImm, driver.OpWriteBlocks:
		return false
	case driver.OpAccumulate:
		return wr.Flags&driver.Fetch != 0
	}
	return len(wr.Local) > 0
}
