package atomics

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/verbs/driver"
)

// TestApplyAgreesWithArithmetic holds every operation at every width and place
// against plain arithmetic, and checks that neighbors stay as they were.
func TestApplyAgreesWithArithmetic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		width := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(rt, "width")
		op := driver.AtomicOp(rapid.IntRange(int(driver.AtomicAdd), int(driver.AtomicMulComplex)).
			Filter(func(op int) bool { return driver.AtomicOp(op).Fits(width) }).Draw(rt, "op"))
		words := [2]uint64{rapid.Uint64().Draw(rt, "w0"), rapid.Uint64().Draw(rt, "w1")}
		mem := make([]byte, 16)
		PutUint(mem[:8], words[0])
		PutUint(mem[8:], words[1])
		before := append([]byte(nil), mem...)
		off := rapid.IntRange(0, 16/width-1).Draw(rt, "slot") * width
		operand := rapid.Uint64().Draw(rt, "operand")
		compare := rapid.SampledFrom([]uint64{Uint(mem[off : off+width]), operand}).Draw(rt, "compare")

		old := Apply(mem[off:off+width], op, operand, compare)
		require.Equal(rt, Uint(before[off:off+width]), old)
		want := Next(op, width, old, operand, compare&mask(width)) & mask(width)
		require.Equal(rt, want, Uint(mem[off:off+width]))
		copy(mem[off:off+width], before[off:off+width])
		require.Equal(rt, before, mem)
	})
}

// TestApplyEachAppliesToEachElement compares ApplyEach with Apply on each element.
func TestApplyEachAppliesToEachElement(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		width := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(rt, "width")
		op := driver.AtomicOp(rapid.IntRange(int(driver.AtomicAdd), int(driver.AtomicMulComplex)).
			Filter(func(op int) bool { return driver.AtomicOp(op).Fits(width) }).Draw(rt, "op"))
		n := rapid.IntRange(1, 6).Draw(rt, "elements") * width
		bytes := func(label string) []byte { return aligned(rapid.SliceOfN(rapid.Byte(), n, n).Draw(rt, label)) }
		mem, operands, old := bytes("mem"), bytes("operands"), make([]byte, n)
		want, earlier := aligned(mem), append([]byte(nil), mem...)
		for i := 0; i < n; i += width {
			Apply(want[i:i+width], op, Uint(operands[i:i+width]), 0)
		}
		again := aligned(mem)
		ApplyEach(again, op, width, operands, nil)
		require.Equal(rt, want, again)
		if rapid.Bool().Draw(rt, "in place") {
			ApplyEach(mem, op, width, operands, operands)
			old = operands
		} else {
			ApplyEach(mem, op, width, operands, old)
		}
		require.Equal(rt, want, mem)
		require.Equal(rt, earlier, old)
	})
}

// TestComplexNumbersAreUpdatedWhole has goroutines add to one pair, and to its neighbors.
func TestComplexNumbersAreUpdatedWhole(t *testing.T) {
	if !Fits(driver.AtomicAddComplex, 16) {
		t.Skip("this CPU has no atomics of 16 bytes")
	}
	mem := make([]byte, 64)[:48] // Go aligns blocks of 64 bytes
	const rounds = 5000
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			operand, old := make([]byte, 16), make([]byte, 16)
			pairOfComplex(1 + 2i).put(operand)
			for range rounds {
				ApplyEach(mem[i/2*16:][:16], driver.AtomicAddComplex, 16, operand, old)
				if v := pairOf(old).complex(); imag(v) != 2*real(v) {
					t.Errorf("half an update: %v", v)
				}
			}
		})
	}
	all.Wait()
	for i := range 3 {
		require.Equal(t, complex(2*rounds, 4*rounds), pairOf(mem[16*i:]).complex())
	}
	operands, want := make([]byte, 16), pairOf(mem).complex()*(1-1i)
	pairOfComplex(1 - 1i).put(operands)
	ApplyEach(mem[:16], driver.AtomicMulComplex, 16, operands, nil)
	require.Equal(t, want, pairOf(mem).complex())
	ApplyEach(mem[:16], driver.AtomicSwap, 16, operands, operands)
	require.Equal(t, want, pairOf(operands).complex())
	ApplyEach(mem[:16], driver.AtomicLoad, 16, nil, operands)
	require.Equal(t, 1-1i, pairOf(operands).complex())
}

// aligned returns a copy of b that begins at a multiple of 8.
func aligned(b []byte) []byte {
	words := make([]atomic.Uint64, len(b)/8+1)
	c := Bytes(words)[:len(b)]
	copy(c, b)
	return c
}

// TestNeighborsInOneWordLoseNothing updates all bytes of one word at the same
// time.
func TestNeighborsInOneWordLoseNothing(t *testing.T) {
	mem := make([]byte, 8)
	var all sync.WaitGroup
	const rounds = 10_000
	for i := range mem {
		all.Go(func() {
			for range rounds {
				Apply(mem[i:i+1], driver.AtomicAdd, 1, 0)
			}
		})
	}
	all.Wait()
	for _, b := range mem {
		require.Equal(t, byte(rounds%256), b)
	}
}
