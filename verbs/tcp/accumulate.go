//go:build linux

package tcp

import (
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// decodeAccumulate reads the fields of an ACCUMULATE. Its payload has an operand for each
// element; a load has none.
func (f *frame) decodeAccumulate(b []byte) error {
	each := binary.LittleEndian.Uint32(b[offEach:])
	f.op, f.width = uint8(each), uint8(each>>8)
	f.bytes = binary.LittleEndian.Uint32(b[offBytes:])
	payload := f.bytes
	if driver.AtomicOp(f.op) == driver.AtomicLoad {
		payload = 0
	}
	if each>>16 != 0 || f.bytes > driver.MaxAccumulate || f.length != payload {
		return fmt.Errorf("%w: ACCUMULATE of %d bytes with %d of operands", errProtocol, f.bytes, f.length)
	}
	return nil
}

// putAccumulate queues an ACCUMULATE: one frame with its operands.
func (q *qp) putAccumulate(r *request) bool {
	f := frame{kind: kindAccumulate, flags: flagLast, op: uint8(r.Atomic), width: r.Width,
		bytes: uint32(r.length), addr: r.Remote.Addr, key: r.Remote.RKey}
	if r.Atomic != driver.AtomicLoad {
		f.length = f.bytes
	}
	need, copied := headerSizes[f.kind], r.copied()
	if copied {
		need += int(f.length)
	}
	if !q.link.out.fits(need, requestRoom) {
		return false
	}
	if r.answered() {
		f.flags |= flagReply
	} else {
		f.flags |= q.ask(r)
	}
	q.put(&f)
	q.gather(r, int(f.length), copied)
	r.Sent = r.length
	q.sq.passed(r)
	return true
}

// elements finds the memory that an ACCUMULATE updates.
func (d *device) elements(f *frame) ([]byte, driver.Status) {
	op, width := driver.AtomicOp(f.op), int(f.width)
	if !atomics.Fits(op, width) || op == driver.AtomicCmpSwap || f.bytes == 0 || int(f.bytes)%width != 0 {
		return nil, driver.RemoteInvalid
	}
	_, mem, ok := d.locateAt(f.key, f.addr, int(f.bytes), driver.RemoteAtomic)
	switch {
	case !ok:
		return nil, driver.RemoteAccess
	case position(mem)%uint64(width) != 0:
		return nil, driver.RemoteInvalid
	}
	return mem, driver.Success
}

// openAccumulate makes room for the operands. It refuses the request before it takes memory
// for them.
func (q *qp) openAccumulate(f *frame) {
	if _, status := q.dev.elements(f); status != driver.Success {
		q.refuse(status)
		return
	}
	q.openBody(f.bodySize)
}

// applyAccumulate updates the elements once all operands have arrived.
func (q *qp) applyAccumulate(f *frame) error {
	mem, status := q.dev.elements(f)
	if status != driver.Success { // the region was closed during reception
		q.refuse(status)
		return nil
	}
	buf, old := q.takeBody(), []byte(nil)
	if f.flags&flagReply != 0 {
		old = buf[:f.bytes]
	}
	atomics.ApplyEach(mem, driver.AtomicOp(f.op), int(f.width), buf[:f.bytes], old)
	q.dev.note()
	seq := q.done
	q.applied(f)
	if old == nil {
		q.dev.bodies.give(buf)
		return nil
	}
	return q.owe(answer{kind: kindData, seq: seq, mem: old, body: buf})
}
