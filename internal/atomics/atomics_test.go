package atomics

import (
	"sync"
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
		op := driver.AtomicOp(rapid.IntRange(int(driver.AtomicAdd), int(driver.AtomicStore)).Draw(rt, "op"))
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
		want := Next(op, old, operand, compare)
		if width < 8 {
			compare &= mask(width)
			want = Next(op, old, operand, compare) & mask(width)
		}
		require.Equal(rt, want, Uint(mem[off:off+width]))
		copy(mem[off:off+width], before[off:off+width])
		require.Equal(rt, before, mem)
	})
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
