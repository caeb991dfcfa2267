package loop

import (
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// update carries out an atomic with the CPU's own, so that it may be mixed with
// the target's.
func update(p *qp, wr *driver.WorkRequest) outcome {
	op, width := wr.Atomic, int(wr.Width)
	switch wr.Op {
	case driver.OpFetchAdd:
		op, width = driver.AtomicAdd, 8
	case driver.OpCmpSwap:
		op, width = driver.AtomicCmpSwap, 8
	}
	m, mem, err := p.ctx.keys.open(wr.Remote, width, driver.RemoteAtomic)
	if err != nil {
		return denied(err)
	}
	defer m.done()
	if wr.Remote.Addr%uint64(width) != 0 {
		return outcome{verdict: failed, status: driver.RemoteInvalid,
			err: fmt.Errorf("%w: atomic of %d bytes at %#x", driver.ErrInvalid, width, wr.Remote.Addr)}
	}
	var old uint64
	switch width {
	case 8:
		old = update64(mem, op, wr.Operand, wr.Compare)
	case 4:
		old = uint64(update32(mem, op, uint32(wr.Operand), uint32(wr.Compare)))
	default:
		old = updateNarrow(mem, op, wr.Operand, wr.Compare)
	}
	if len(wr.Local) > 0 {
		putUint(wr.Local[0].Mem, old)
	}
	return outcome{touched: op != driver.AtomicLoad}
}

func update64(mem []byte, op driver.AtomicOp, operand, compare uint64) uint64 {
	w := word64(mem)
	switch op {
	case driver.AtomicAdd:
		return w.Add(operand) - operand
	case driver.AtomicAnd:
		return w.And(operand)
	case driver.AtomicOr:
		return w.Or(operand)
	case driver.AtomicSwap, driver.AtomicStore:
		return w.Swap(operand)
	case driver.AtomicLoad:
		return w.Load()
	}
	for {
		old := w.Load()
		if next := apply(op, old, operand, compare); w.CompareAndSwap(old, next) {
			return old
		}
	}
}

func update32(mem []byte, op driver.AtomicOp, operand, compare uint32) uint32 {
	w := word32(mem)
	switch op {
	case driver.AtomicAdd:
		return w.Add(operand) - operand
	case driver.AtomicAnd:
		return w.And(operand)
	case driver.AtomicOr:
		return w.Or(operand)
	case driver.AtomicSwap, driver.AtomicStore:
		return w.Swap(operand)
	case driver.AtomicLoad:
		return w.Load()
	}
	for {
		old := w.Load()
		next := uint32(apply(op, uint64(old), uint64(operand), uint64(compare)))
		if w.CompareAndSwap(old, next) {
			return old
		}
	}
}

// updateNarrow updates 1 or 2 bytes by compare-and-swap of the word that they
// lie in.
func updateNarrow(mem []byte, op driver.AtomicOp, operand, compare uint64) uint64 {
	w, offset := wordAround(mem)
	var bytes [4]byte
	field := bytes[offset : int(offset)+len(mem)]
	for {
		word := w.Load()
		binary.NativeEndian.PutUint32(bytes[:], word)
		old := getUint(field)
		if op == driver.AtomicLoad {
			return old
		}
		putUint(field, apply(op, old, operand, compare&mask(len(mem))))
		if w.CompareAndSwap(word, binary.NativeEndian.Uint32(bytes[:])) {
			return old
		}
	}
}

// apply is the value that replaces old.
func apply(op driver.AtomicOp, old, operand, compare uint64) uint64 {
	switch op {
	case driver.AtomicAdd:
		return old + operand
	case driver.AtomicAnd:
		return old & operand
	case driver.AtomicOr:
		return old | operand
	case driver.AtomicXor:
		return old ^ operand
	case driver.AtomicSwap, driver.AtomicStore:
		return operand
	case driver.AtomicCmpSwap:
		if old == compare {
			return operand
		}
	}
	return old
}

func mask(width int) uint64 { return 1<<(8*width) - 1 }

func getUint(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.NativeEndian.Uint16(b))
	case 4:
		return uint64(binary.NativeEndian.Uint32(b))
	default:
		return binary.NativeEndian.Uint64(b)
	}
}

func putUint(b []byte, v uint64) {
	switch len(b) {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.NativeEndian.PutUint16(b, uint16(v))
	case 4:
		binary.NativeEndian.PutUint32(b, uint32(v))
	default:
		binary.NativeEndian.PutUint64(b, v)
	}
}
