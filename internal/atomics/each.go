package atomics

import (
	"encoding/binary"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/verbs/driver"
)

// ApplyEach carries out op on each element of mem, in order, as [Apply] does. The operand of an
// element lies at its place in operands. ApplyEach stores the earlier values in old, unless that
// is nil; old may be operands. All lengths are equal and a multiple of width, as is the address
// of mem. AtomicLoad needs no operands.
func ApplyEach(mem []byte, op driver.AtomicOp, width int, operands, old []byte) {
	if op == driver.AtomicAdd && width == 8 && !mutant.UpdateInTwoSteps {
		addEach64(mem, operands, old)
		return
	}
	if width == 16 {
		applyEachPair(mem, op, operands, old)
		return
	}
	for i := 0; i < len(mem); i += width {
		operand := uint64(0)
		if op != driver.AtomicLoad {
			operand = Uint(operands[i : i+width])
		}
		earlier := Apply(mem[i:i+width:i+width], op, operand, 0)
		if old != nil {
			PutUint(old[i:i+width], earlier)
		}
	}
}

// ApplyRuns is [ApplyEach] on the blocks of runs, one behind the other. The byte at place from is the
// first of mem. Precondition: blocks.Aligned(runs, width).
func ApplyRuns(mem []byte, from int, runs []driver.Run, op driver.AtomicOp, width int, operands, old []byte) {
	for _, r := range runs {
		for at := r.At - from; r.Count > 0; at, r.Count = at+r.Stride, r.Count-1 {
			var earlier []byte
			if old != nil {
				earlier, old = old[:r.Block], old[r.Block:]
			}
			ApplyEach(mem[at:at+r.Block], op, width, operands[:r.Block], earlier)
			operands = operands[r.Block:]
		}
	}
}

// applyEachPair applies an operation to complex numbers, one after the other: each is atomic, the
// slice is not. old may be nil.
func applyEachPair(mem []byte, op driver.AtomicOp, operands, old []byte) {
	for i := 0; i < len(mem); i += 16 {
		operand := pair{}
		if op != driver.AtomicLoad {
			operand = pairOf(operands[i : i+16])
		}
		earlier := applyPair(mem[i:i+16:i+16], op, operand)
		if old != nil {
			earlier.put(old[i : i+16])
		}
	}
}

// addEach64 adds whole words, the most frequent operation.
func addEach64(mem, operands, old []byte) {
	words := Words64(mem)
	operands = operands[:8*len(words)]
	if old != nil {
		old = old[:8*len(words)]
	}
	for i := range words {
		operand := binary.NativeEndian.Uint64(operands[8*i:])
		sum := words[i].Add(operand)
		if old != nil {
			binary.NativeEndian.PutUint64(old[8*i:], sum-operand)
		}
	}
}
