package shm

import (
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// atomic executes op on the peer's word with an instruction of this CPU.
func (q *QP) atomic(wr *driver.WorkRequest, op driver.AtomicOp, width int) error {
	if width != 1 && width != 2 && width != 4 && width != 8 || op < driver.AtomicAdd || op > driver.AtomicStore {
		return fail(driver.RemoteInvalid, fmt.Errorf("%w: atomic operation %d of %d bytes", driver.ErrInvalid, op, width))
	}
	if len(wr.Local) > 0 && len(wr.Local[0].Mem) < width {
		return fail(driver.LocalLength, fmt.Errorf("%w: %d bytes for a result of %d", driver.ErrInvalid, len(wr.Local[0].Mem), width))
	}
	mem, err := q.remote.peer.resolve(wr.Remote, uint64(width), driver.RemoteAtomic)
	if err != nil {
		return err
	}
	if !aligned(mem, uintptr(width)) {
		return fail(driver.RemoteInvalid, fmt.Errorf("%w: an atomic of %d bytes at %#x", driver.ErrInvalid, width, wr.Remote.Addr))
	}
	old := atomicDo(mem, op, width, wr.Operand, wr.Compare)
	if len(wr.Local) > 0 && op != driver.AtomicStore {
		putWord(wr.Local[0].Mem, width, old)
	}
	q.wakePeer = q.remote.bell
	return nil
}

// atomicDo returns what the word held before. Preconditions: mem is aligned to
// width, and lies in a mapping of whole pages.
func atomicDo(mem []byte, op driver.AtomicOp, width int, operand, compare uint64) uint64 {
	switch width {
	case 8:
		return atomic64(mem, op, operand, compare)
	case 4:
		return atomic32(mem, op, uint32(operand), uint32(compare))
	}
	return atomicNarrow(mem, op, width, operand, compare)
}

func atomic64(mem []byte, op driver.AtomicOp, operand, compare uint64) uint64 {
	p := word64(mem)
	switch op {
	case driver.AtomicAdd:
		return p.Add(operand) - operand
	case driver.AtomicSwap, driver.AtomicStore:
		return p.Swap(operand)
	}
	for {
		old := p.Load()
		value, write := apply(op, old, operand, compare)
		if !write || p.CompareAndSwap(old, value) {
			return old
		}
	}
}

func atomic32(mem []byte, op driver.AtomicOp, operand, compare uint32) uint64 {
	p := word32(mem)
	switch op {
	case driver.AtomicAdd:
		return uint64(p.Add(operand) - operand)
	case driver.AtomicSwap, driver.AtomicStore:
		return uint64(p.Swap(operand))
	}
	for {
		old := p.Load()
		value, write := apply(op, uint64(old), uint64(operand), uint64(compare))
		if !write || p.CompareAndSwap(old, uint32(value)) {
			return uint64(old)
		}
	}
}

// atomicNarrow works on one or two bytes through the aligned word that holds
// them. Writing its other bytes back unchanged is harmless: the exchange
// succeeds only if they are.
func atomicNarrow(mem []byte, op driver.AtomicOp, width int, operand, compare uint64) uint64 {
	p, shift := containingWord(mem, width)
	mask := uint64(1)<<(8*width) - 1
	for {
		whole := p.Load()
		old := uint64(whole) >> shift & mask
		value, write := apply(op, old, operand&mask, compare&mask)
		changed := uint64(whole)&^(mask<<shift) | (value&mask)<<shift
		if !write || p.CompareAndSwap(whole, uint32(changed)) {
			return old
		}
	}
}

// apply is what op makes of a word, and whether it writes at all.
func apply(op driver.AtomicOp, old, operand, compare uint64) (value uint64, write bool) {
	switch op {
	case driver.AtomicAdd:
		return old + operand, true
	case driver.AtomicAnd:
		return old & operand, true
	case driver.AtomicOr:
		return old | operand, true
	case driver.AtomicXor:
		return old ^ operand, true
	case driver.AtomicCmpSwap:
		return operand, old == compare
	case driver.AtomicLoad:
		return old, false
	}
	return operand, true
}

// putWord stores the low bytes of v in the host's order.
func putWord(mem []byte, width int, v uint64) {
	switch width {
	case 1:
		mem[0] = byte(v)
	case 2:
		binary.NativeEndian.PutUint16(mem, uint16(v))
	case 4:
		binary.NativeEndian.PutUint32(mem, uint32(v))
	default:
		binary.NativeEndian.PutUint64(mem, v)
	}
}
