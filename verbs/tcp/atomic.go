//go:build linux

package tcp

import (
	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// putQuestion queues a READ or an atomic: one frame without payload.
func (q *qp) putQuestion(r *request) bool {
	f := frame{kind: kindRead, flags: flagLast, length: uint32(r.length), addr: r.Remote.Addr, key: r.Remote.RKey}
	if r.Op != driver.OpRead {
		op, width := wq.Atomic(&r.WorkRequest)
		f.kind, f.length, f.operand, f.compare = kindAtomic, 0, r.Operand, r.Compare
		f.op, f.width = uint8(op), uint8(width)
		if r.hasResponse() {
			f.flags |= flagReply
		} else {
			f.flags |= q.wantAck(r.Flags)
		}
	}
	if !q.link.out.fits(headerSizes[f.kind], requestRoom) {
		return false
	}
	q.put(&f)
	q.sq.passed(r)
	return true
}

// atomic applies f to registered memory by an atomic of this CPU and returns
// the old value.
func (d *device) atomic(f *frame) (old uint64, status driver.Status) {
	op := driver.AtomicOp(f.op)
	if f.width > 8 || !op.Fits(int(f.width)) {
		return 0, driver.RemoteInvalid
	}
	_, mem, status := d.locateAt(f.key, f.addr, int(f.width), driver.RemoteAtomic)
	if status != driver.Success {
		return 0, status
	}
	if position(mem)%uint64(f.width) != 0 {
		return 0, driver.RemoteInvalid
	}
	return atomics.Apply(mem, op, f.operand, f.compare), driver.Success
}
