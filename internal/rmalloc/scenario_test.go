package rmalloc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// policies are all there are.
var policies = []Policy{NextFit{}, FirstFit{}, BestFit{}, WorstFit{}}

// eachPolicy runs test once for each policy.
func eachPolicy(t *testing.T, test func(t *testing.T, p Policy)) {
	t.Helper()
	for _, p := range policies {
		t.Run(p.String(), func(t *testing.T) { test(t, p) })
	}
}

func newHeap(t testing.TB, size, blocks int, p Policy) *Heap {
	t.Helper()
	h, err := New(Config{Size: size, Blocks: blocks, Policy: p})
	require.NoError(t, err)
	return h
}

// alloc returns a block of n bytes that there must be room for.
func alloc(t testing.TB, h *Heap, n int) Addr {
	t.Helper()
	a, err := h.Alloc(n)
	require.NoError(t, err)
	return a
}

// release brings back a block that was sent, as a tag does.
func release(t testing.TB, h *Heap, a Addr, n int) {
	t.Helper()
	require.NoError(t, h.Release(a.Offset()/Granule, Granules(n)))
}

// A ring cannot do this: A and C are kept while B's memory is used again.
func TestAllocUsesABlockFreedBetweenTwoLiveBlocks(t *testing.T) {
	eachPolicy(t, func(t *testing.T, p Policy) {
		const n = 1000
		h := newHeap(t, 3*1024, 0, p)
		a, b, c := alloc(t, h, n), alloc(t, h, n), alloc(t, h, n)
		for _, block := range []Addr{a, b, c} {
			require.NoError(t, h.Send(block))
		}
		_, err := h.Alloc(n)
		require.Equal(t, ErrFull, err)

		release(t, h, b, n)
		again := alloc(t, h, n)
		require.Equal(t, b.Offset(), again.Offset())
		require.NotEqual(t, b, again)
		require.ErrorIs(t, h.Free(b), ErrStale)
		require.NoError(t, h.Free(again))
	})
}
