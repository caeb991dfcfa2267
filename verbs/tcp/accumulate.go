//go:build linux

package tcp

import (
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/blocks"
	"github.com/gopgas/gopgas/verbs/driver"
)

// decodeAccumulate reads the fields of an ACCUMULATE. Its payload has the runs, if it has any, and behind
// them an operand for each element; a load has no operands.
func (f *frame) decodeAccumulate(b []byte) error {
	each := binary.LittleEndian.Uint32(b[offEach:])
	f.op, f.width, f.runs = uint8(each), uint8(each>>8), each>>16
	f.bytes = binary.LittleEndian.Uint32(b[offBytes:])
	size := uint64(f.runs)*driver.RunSize + uint64(f.bytes)
	if size > bodySize || f.length != uint32(f.table()+f.operands()) {
		return fmt.Errorf("%w: ACCUMULATE of %d bytes in %d runs, with a payload of %d", errProtocol, f.bytes, f.runs, f.length)
	}
	return nil
}

// table returns the number of bytes of the runs in the payload.
func (f *frame) table() int { return int(f.runs) * driver.RunSize }

// operands returns the number of bytes of the operands of an ACCUMULATE.
func (f *frame) operands() int {
	if driver.AtomicOp(f.op) == driver.AtomicLoad {
		return 0
	}
	return int(f.bytes)
}

// putAccumulate queues an ACCUMULATE: one frame with its runs and operands.
func (q *qp) putAccumulate(r *request) bool {
	f := frame{kind: kindAccumulate, flags: flagLast, op: uint8(r.Atomic), width: r.Width,
		runs: uint32(len(r.Runs)), bytes: uint32(r.length), addr: r.Remote.Addr, key: r.Remote.RKey}
	table, operands := f.table(), f.operands()
	f.length = uint32(table + operands)
	need, copied := headerSizes[f.kind]+table, r.copied()
	if copied {
		need += operands
	}
	if !q.link.out.fits(need, requestRoom) {
		return false
	}
	if r.hasResponse() {
		f.flags |= flagReply
	} else {
		f.flags |= q.wantAck(r.Flags)
	}
	q.put(&f)
	blocks.PutRuns(q.link.out.extend(table), r.Runs)
	q.gather(r, operands, copied)
	r.Sent = r.length
	q.sq.passed(r)
	return true
}

// elements finds the memory that holds the elements of an ACCUMULATE, and the place of its first byte.
// Without runs the elements lie one behind the other.
func (d *device) elements(f *frame, runs []driver.Run) (mem []byte, from int, status driver.Status) {
	op, width := driver.AtomicOp(f.op), int(f.width)
	if !atomics.Fits(op, width) || op == driver.AtomicCmpSwap || f.bytes == 0 || int(f.bytes)%width != 0 || !blocks.Aligned(runs, width) {
		return nil, 0, driver.RemoteInvalid
	}
	if len(runs) > 0 {
		mem, from, status = d.places(f, runs, driver.RemoteAtomic)
	} else {
		_, mem, status = d.locateAt(f.key, f.addr, int(f.bytes), driver.RemoteAtomic)
	}
	if status == driver.Success && position(mem)%uint64(width) != 0 {
		status = driver.RemoteInvalid
	}
	return mem, from, status
}

// openAccumulate makes room for the payload. It refuses a request without runs before it takes memory
// for the operands.
func (q *qp) openAccumulate(f *frame) {
	if f.runs == 0 {
		if _, _, status := q.dev.elements(f, nil); status != driver.Success {
			q.refuse(status)
			return
		}
	}
	q.openBody(f.bodySize)
}

// applyAccumulate updates the elements once all operands have arrived.
func (q *qp) applyAccumulate(f *frame) error {
	buf, old, table := q.takeBody(), []byte(nil), f.table()
	q.dev.runs = blocks.AppendRuns(q.dev.runs[:0], buf[:table])
	mem, from, status := q.dev.elements(f, q.dev.runs)
	if status != driver.Success { // or the region was closed during reception
		q.dev.bodies.give(buf)
		q.refuse(status)
		return nil
	}
	operands := buf[table : table+int(f.bytes)]
	if f.flags&flagReply != 0 {
		old = operands
	}
	if op, width := driver.AtomicOp(f.op), int(f.width); table > 0 {
		atomics.ApplyRuns(mem, from, q.dev.runs, op, width, operands, old)
	} else {
		atomics.ApplyEach(mem, op, width, operands, old)
	}
	q.dev.note()
	seq := q.done
	q.applied(f)
	if old == nil {
		q.dev.bodies.give(buf)
		return nil
	}
	return q.owe(response{kind: kindData, seq: seq, mem: old, body: buf})
}
