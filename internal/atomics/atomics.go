// Package atomics carries out the driver's atomic operations with those of the
// CPU, on any aligned word of 1, 2, 4 or 8 bytes. Windows on mapped memory and
// all providers whose atomics the CPU executes use it, so operations on one word
// may be mixed freely.
package atomics

import (
	"encoding/binary"

	"github.com/gopgas/gopgas/verbs/driver"
)

// Apply carries out op on the whole of mem, and returns its earlier value,
// zero-extended. The length of mem is the width of the word; its address is a
// multiple of the width.
func Apply(mem []byte, op driver.AtomicOp, operand, compare uint64) uint64 {
	switch len(mem) {
	case 8:
		return apply64(mem, op, operand, compare)
	case 4:
		return uint64(apply32(mem, op, uint32(operand), uint32(compare)))
	}
	return applyNarrow(mem, op, operand, compare&mask(len(mem)))
}

func apply64(mem []byte, op driver.AtomicOp, operand, compare uint64) uint64 {
	w := Word64(mem)
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
		if w.CompareAndSwap(old, Next(op, old, operand, compare)) {
			return old
		}
	}
}

func apply32(mem []byte, op driver.AtomicOp, operand, compare uint32) uint32 {
	w := Word32(mem)
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
		next := uint32(Next(op, uint64(old), uint64(operand), uint64(compare)))
		if w.CompareAndSwap(old, next) {
			return old
		}
	}
}

// applyNarrow updates 1 or 2 bytes by compare-and-swap of the aligned word of
// four bytes around them.
func applyNarrow(mem []byte, op driver.AtomicOp, operand, compare uint64) uint64 {
	w, offset := wordAround(mem)
	var bytes [4]byte
	field := bytes[offset : int(offset)+len(mem)]
	for {
		word := w.Load()
		binary.NativeEndian.PutUint32(bytes[:], word)
		old := Uint(field)
		if op == driver.AtomicLoad {
			return old
		}
		PutUint(field, Next(op, old, operand, compare))
		if w.CompareAndSwap(word, binary.NativeEndian.Uint32(bytes[:])) {
			return old
		}
	}
}

// Next returns the value that op stores in place of old.
func Next(op driver.AtomicOp, old, operand, compare uint64) uint64 {
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

// LoadWords copies src, aligned words of 64 bits, to dst. It loads each word
// whole: the owner may store it at the same time.
func LoadWords(dst, src []byte) {
	for i := 0; i < len(src); i += 8 {
		binary.NativeEndian.PutUint64(dst[i:], Word64(src[i:]).Load())
	}
}

func mask(width int) uint64 { return 1<<(8*width) - 1 }

// Uint reads an unsigned value of 1, 2, 4 or 8 bytes as the CPU stores it.
func Uint(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.NativeEndian.Uint16(b))
	case 4:
		return uint64(binary.NativeEndian.Uint32(b))
	}
	return binary.NativeEndian.Uint64(b)
}

// PutUint writes the low bytes of v as the CPU stores them.
func PutUint(b []byte, v uint64) {
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
