// Package atomics carries out the driver's atomic operations with those of the
// CPU, on any aligned word of 1, 2, 4 or 8 bytes. Windows on mapped memory and
// all providers whose atomics the CPU executes use it, so operations on one word
// may be mixed freely.
package atomics

import (
	"encoding/binary"
	"math"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Apply carries out op on the whole of mem, and returns its earlier value,
// zero-extended. The length of mem is the width of the word; its address is a
// multiple of the width.
func Apply(mem []byte, op driver.AtomicOp, operand, compare uint64) uint64 {
	if mutant.UpdateInTwoSteps {
		return applyInTwoSteps(mem, op, operand, compare)
	}
	switch len(mem) {
	case 8:
		return apply64(mem, op, operand, compare)
	case 4:
		return uint64(apply32(mem, op, uint32(operand), uint32(compare)))
	}
	return applyNarrow(mem, op, operand, compare&mask(len(mem)))
}

// applyInTwoSteps loses the updates that come between its load and its store.
func applyInTwoSteps(mem []byte, op driver.AtomicOp, operand, compare uint64) uint64 {
	old := Uint(mem)
	PutUint(mem, Next(op, len(mem), old, operand, compare&mask(len(mem))))
	return old
}

// apply64 applies an operation to an aligned word of 8 bytes and returns the earlier value. It uses
// an instruction of the CPU where there is one, else a loop.
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
		if w.CompareAndSwap(old, Next(op, 8, old, operand, compare)) {
			return old
		}
	}
}

// apply32 is apply64 for 4 bytes.
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
		next := uint32(Next(op, 4, uint64(old), uint64(operand), uint64(compare)))
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
		PutUint(field, Next(op, len(mem), old, operand, compare))
		if w.CompareAndSwap(word, binary.NativeEndian.Uint32(bytes[:])) {
			return old
		}
	}
}

// Next returns the value that op stores in place of old in a word of width bytes. Only the
// result's low width bytes count.
func Next(op driver.AtomicOp, width int, old, operand, compare uint64) uint64 {
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
	case driver.AtomicMinInt:
		return uint64(min(signed(old, width), signed(operand, width)))
	case driver.AtomicMaxInt:
		return uint64(max(signed(old, width), signed(operand, width)))
	case driver.AtomicMinUint:
		return min(old&mask(width), operand&mask(width))
	case driver.AtomicMaxUint:
		return max(old&mask(width), operand&mask(width))
	case driver.AtomicMul:
		return old * operand
	case driver.AtomicAddComplex:
		return complexBits(complexOf(old) + complexOf(operand))
	case driver.AtomicMulComplex:
		return complexBits(complexOf(old) * complexOf(operand))
	case driver.AtomicAddFloat, driver.AtomicMulFloat, driver.AtomicMinFloat, driver.AtomicMaxFloat:
		return nextFloat(op, width, old, operand)
	}
	return old
}

// nextFloat is Next for operations on floating-point numbers.
func nextFloat(op driver.AtomicOp, width int, old, operand uint64) uint64 {
	if width == 4 {
		next := combine(op, math.Float32frombits(uint32(old)), math.Float32frombits(uint32(operand)))
		return uint64(math.Float32bits(next))
	}
	return math.Float64bits(combine(op, math.Float64frombits(old), math.Float64frombits(operand)))
}

// combine applies an operation on floats.
func combine[T float32 | float64](op driver.AtomicOp, old, operand T) T {
	switch op {
	case driver.AtomicMulFloat:
		return old * operand
	case driver.AtomicMinFloat:
		return min(old, operand)
	case driver.AtomicMaxFloat:
		return max(old, operand)
	}
	return old + operand
}

// complexOf returns the complex64 that lies in a word.
func complexOf(word uint64) complex64 {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], word)
	re, im := binary.NativeEndian.Uint32(b[:4]), binary.NativeEndian.Uint32(b[4:])
	return complex(math.Float32frombits(re), math.Float32frombits(im))
}

// complexBits is the inverse of complexOf.
func complexBits(c complex64) uint64 {
	var b [8]byte
	binary.NativeEndian.PutUint32(b[:4], math.Float32bits(real(c)))
	binary.NativeEndian.PutUint32(b[4:], math.Float32bits(imag(c)))
	return binary.NativeEndian.Uint64(b[:])
}

// signed extends the sign of v's low width bytes.
func signed(v uint64, width int) int64 {
	shift := 64 - 8*width
	return int64(v<<shift) >> shift
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
