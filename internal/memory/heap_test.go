//go:build linux

package memory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestHeapIsAlignedZeroedAndExact(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 4096, 1<<20 + 3} {
		mem := Heap(n)
		require.Equal(t, driver.KindHeap, mem.Kind)
		require.Equal(t, -1, mem.FD)
		require.Len(t, mem.Bytes, n)
		require.Equal(t, n, cap(mem.Bytes))
		require.Zero(t, address(mem.Bytes)%Alignment, "n=%d", n)
		for _, b := range mem.Bytes {
			require.Zero(t, b)
		}
	}
	require.Empty(t, Heap(-1).Bytes)
	for align := 1; align <= 8192; align *= 2 {
		mem := HeapAligned(100, align)
		require.Len(t, mem.Bytes, 100)
		require.Zero(t, address(mem.Bytes)%uintptr(align))
	}
}
