package tcp

import (
	"sync/atomic"

	"github.com/gopgas/gopgas/verbs/driver"
)

// putQuestion queues a READ or an atomic: one frame without payload.
func (q *qp) putQuestion(r *request) bool {
	f := frame{kind: kindRead, flags: flagLast, length: uint32(r.length), addr: r.Remote.Addr, key: r.Remote.RKey}
	if r.Op != driver.OpRead {
		f.kind, f.length, f.operand, f.compare = kindAtomic, 0, r.Operand, r.Compare
		f.op, f.width = uint8(r.Atomic), r.Width
		if r.answered() {
			f.flags |= flagReply
		} else {
			f.flags |= q.ask(r)
		}
	}
	if !q.out.fits(headerSizes[f.kind], requestRoom) {
		return false
	}
	q.out.put(&f)
	q.sq.passed(r)
	return true
}

// normalise writes the two classic atomics as the extended ones they are.
func (r *request) normalise() {
	switch r.Op {
	case driver.OpFetchAdd:
		r.Atomic, r.Width = driver.AtomicAdd, 8
	case driver.OpCmpSwap:
		r.Atomic, r.Width = driver.AtomicCmpSwap, 8
	}
}

// atomic applies f to registered memory by an atomic of this CPU and returns
// the old value.
func (d *device) atomic(f *frame) (old uint64, status driver.Status) {
	switch f.width {
	case 1, 2, 4, 8:
	default:
		return 0, driver.RemoteInvalid
	}
	op := driver.AtomicOp(f.op)
	if op < driver.AtomicAdd || op > driver.AtomicStore {
		return 0, driver.RemoteInvalid
	}
	_, mem, ok := d.locateAt(f.key, f.addr, int(f.width), driver.RemoteAtomic)
	if !ok {
		return 0, driver.RemoteAccess
	}
	if position(mem)%uint64(f.width) != 0 {
		return 0, driver.RemoteInvalid
	}
	switch f.width {
	case 8:
		return atomic64(word64(mem), op, f.operand, f.compare), driver.Success
	case 4:
		return uint64(atomic32(word32(mem), op, uint32(f.operand), uint32(f.compare))), driver.Success
	}
	return narrow(mem, op, f.operand, f.compare), driver.Success
}

func atomic64(p *uint64, op driver.AtomicOp, operand, compare uint64) uint64 {
	switch op {
	case driver.AtomicAdd:
		return atomic.AddUint64(p, operand) - operand
	case driver.AtomicSwap, driver.AtomicStore:
		return atomic.SwapUint64(p, operand)
	case driver.AtomicLoad:
		return atomic.LoadUint64(p)
	}
	for {
		old := atomic.LoadUint64(p)
		if atomic.CompareAndSwapUint64(p, old, combine(op, old, operand, compare)) {
			return old
		}
	}
}

func atomic32(p *uint32, op driver.AtomicOp, operand, compare uint32) uint32 {
	switch op {
	case driver.AtomicAdd:
		return atomic.AddUint32(p, operand) - operand
	case driver.AtomicSwap, driver.AtomicStore:
		return atomic.SwapUint32(p, operand)
	case driver.AtomicLoad:
		return atomic.LoadUint32(p)
	}
	for {
		old := atomic.LoadUint32(p)
		if atomic.CompareAndSwapUint32(p, old, uint32(combine(op, uint64(old), uint64(operand), uint64(compare)))) {
			return old
		}
	}
}

// narrow works on one or two bytes through the aligned word around them; its
// other bytes keep whatever value they have at that moment.
func narrow(mem []byte, op driver.AtomicOp, operand, compare uint64) uint64 {
	p, shift := wordAround(mem)
	mask := uint32(1)<<(8*len(mem)) - 1
	operand, compare = operand&uint64(mask), compare&uint64(mask)
	for {
		whole := atomic.LoadUint32(p)
		old := uint64(whole >> shift & mask)
		if op == driver.AtomicLoad {
			return old
		}
		next := uint32(combine(op, old, operand, compare)) & mask
		if atomic.CompareAndSwapUint32(p, whole, whole&^(mask<<shift)|next<<shift) {
			return old
		}
	}
}

// combine is what op stores where it finds old.
func combine(op driver.AtomicOp, old, operand, compare uint64) uint64 {
	switch op {
	case driver.AtomicAdd:
		return old + operand
	case driver.AtomicAnd:
		return old & operand
	case driver.AtomicOr:
		return old | operand
	case driver.AtomicXor:
		return old ^ operand
	case driver.AtomicCmpSwap:
		if old != compare {
			return old
		}
		return operand
	case driver.AtomicLoad:
		return old
	}
	return operand
}
