package rmalloc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShrinkFreesGranulesForTheNextBlock(t *testing.T) {
	h, err := New(Config{Size: 10 * Granule, Blocks: 10})
	require.NoError(t, err)
	a, err := h.Alloc(10 * Granule)
	require.NoError(t, err)
	_, err = h.Alloc(1)
	require.ErrorIs(t, err, ErrFull)
	require.NoError(t, h.Shrink(a, 3*Granule+1))
	require.NoError(t, h.Shrink(a, 3*Granule+1), "it is that long")
	require.Equal(t, 6*Granule, h.Stats().Largest)
	b, err := h.Alloc(6 * Granule)
	require.NoError(t, err)
	require.Equal(t, 4*Granule, b.Offset())
	require.ErrorIs(t, h.Shrink(a, 5*Granule), ErrInvalid, "it is shorter now")

	require.NoError(t, h.Shrink(a, 0), "a block of nothing keeps a granule")
	c, err := h.Alloc(3 * Granule)
	require.NoError(t, err)
	require.Equal(t, Granule, c.Offset())
	for _, x := range []Addr{a, b, c} {
		require.NoError(t, h.Send(x))
		require.ErrorIs(t, h.Shrink(x, 0), ErrStale)
	}
	require.NoError(t, h.Release(0, 10), "tags are of what blocks have kept")
}

// Blocks that shrink leave as many holes as there are blocks, for which there are
// slots.
func TestAllBlocksOfAFullTableShrink(t *testing.T) {
	const blocks = 16
	h, err := New(Config{Size: 2 * blocks * Granule, Blocks: blocks})
	require.NoError(t, err)
	for range 3 {
		var all []Addr
		for range blocks {
			a, err := h.Alloc(2 * Granule)
			require.NoError(t, err)
			all = append(all, a)
		}
		for _, a := range all {
			require.NoError(t, h.Shrink(a, 1))
		}
		require.Equal(t, blocks, h.Stats().Holes)
		for _, a := range all {
			require.NoError(t, h.Free(a))
		}
	}
}
