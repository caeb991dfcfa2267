package loop

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/verbs/driver"
)

// TestAtomicsOfAllWidthsAgree: on values that fit, a narrow update is the wide
// one cut off.
func TestAtomicsOfAllWidthsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "width")
		op := driver.AtomicOp(rapid.IntRange(int(driver.AtomicAdd), int(driver.AtomicStore)).Draw(t, "op"))
		before, operand := rapid.Uint64().Draw(t, "before"), rapid.Uint64().Draw(t, "operand")
		compare := rapid.OneOf(rapid.Uint64(), rapid.Just(before)).Draw(t, "compare")
		limit := ^uint64(0) >> (64 - 8*width)
		offset := rapid.IntRange(0, 8/width-1).Draw(t, "slot") * width

		mem := make([]byte, 16)
		for i := range mem {
			mem[i] = 0xA5
		}
		word := mem[offset : offset+width]
		putUint(word, before)
		var old uint64
		switch width {
		case 8:
			old = update64(word, op, operand, compare)
		case 4:
			old = uint64(update32(word, op, uint32(operand), uint32(compare)))
		default:
			old = updateNarrow(word, op, operand, compare)
		}
		require.Equal(t, before&limit, old)
		require.Equal(t, apply(op, before&limit, operand&limit, compare&limit)&limit, getUint(word))
		for i := range mem {
			if i < offset || i >= offset+width {
				require.Equal(t, byte(0xA5), mem[i], "neighbour %d", i)
			}
		}
	})
}
