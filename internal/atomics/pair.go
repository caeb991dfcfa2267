package atomics

import (
	"encoding/binary"
	"math"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Fits reports whether op takes words of width bytes, and this CPU can carry it out. Words of
// 16 bytes need an instruction that few architectures have.
func Fits(op driver.AtomicOp, width int) bool { return op.Fits(width) && (width < 16 || hasPairs) }

// Pairs reports whether this CPU has atomics of 16 bytes.
func Pairs() bool { return hasPairs }

// A pair is a word of 16 bytes as the CPU stores it.
type pair [2]uint64

func pairOf(b []byte) pair {
	return pair{binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[8:16])}
}

// put stores the two halves.
func (p pair) put(b []byte) {
	binary.NativeEndian.PutUint64(b, p[0])
	binary.NativeEndian.PutUint64(b[8:16], p[1])
}

// applyPair carries out op on a word of 16 bytes, and returns its earlier value.
func applyPair(mem []byte, op driver.AtomicOp, operand pair) pair {
	if mutant.UpdateInTwoSteps {
		old := pairOf(mem)
		nextPair(op, old, operand).put(mem)
		return old
	}
	w := wordPair(mem)
	seen := compareSwapPair(w, pair{}, pair{}) // a load
	for op != driver.AtomicLoad {
		old := seen
		if seen = compareSwapPair(w, old, nextPair(op, old, operand)); seen == old {
			break
		}
	}
	return seen
}

// nextPair is Next for a word of 16 bytes.
func nextPair(op driver.AtomicOp, old, operand pair) pair {
	switch op {
	case driver.AtomicSwap, driver.AtomicStore:
		return operand
	case driver.AtomicAddComplex:
		return pairOfComplex(old.complex() + operand.complex())
	case driver.AtomicMulComplex:
		return pairOfComplex(old.complex() * operand.complex())
	}
	return old
}

func (p pair) complex() complex128 {
	return complex(math.Float64frombits(p[0]), math.Float64frombits(p[1]))
}

func pairOfComplex(c complex128) pair {
	return pair{math.Float64bits(real(c)), math.Float64bits(imag(c))}
}
