package rmalloc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A layout is a heap with holes of the given sizes, each between two blocks, and
// no memory besides: +6+3+9+3+ for 6, 3, 9, 3.
func layout(t testing.TB, p Policy, holes ...int) *Heap {
	t.Helper()
	total := 1
	for _, n := range holes {
		total += n + 1
	}
	h := newHeap(t, total*Granule, 0, p)
	alloc(t, h, 1)
	gaps := make([]Addr, len(holes))
	for i, n := range holes {
		gaps[i] = alloc(t, h, n*Granule)
		alloc(t, h, 1)
	}
	for _, a := range gaps {
		require.NoError(t, h.Free(a))
	}
	require.Equal(t, len(holes), h.Stats().Holes)
	return h
}

// places allocates blocks of so many granules and returns their places.
func places(t testing.TB, h *Heap, counts ...int) (granule []int) {
	t.Helper()
	for _, n := range counts {
		granule = append(granule, alloc(t, h, n*Granule).Offset()/Granule)
	}
	return granule
}

// The holes of all of these: 6 at 1, 3 at 8, 9 at 12, 3 at 22.
func TestPoliciesPlaceBlocksAsTheirNamesSay(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		counts []int
		want   []int
	}{
		{NextFit{}, []int{2, 2, 2, 2, 9}, []int{1, 3, 5, 8, 12}},
		{NextFit{}, []int{7, 1, 3, 6, 1}, []int{12, 19, 22, 1, 8}}, // around, and on
		{FirstFit{}, []int{2, 7, 4, 3, 1}, []int{1, 12, 3, 8, 19}},
		{BestFit{}, []int{2, 1, 3, 5, 9}, []int{8, 10, 22, 1, 12}},
		{BestFit{}, []int{3, 3, 3, 3}, []int{8, 22, 1, 4}}, // exact ones first, the lowest of equals
		{WorstFit{}, []int{1, 3, 1, 4}, []int{12, 13, 1, 2}},
	} {
		h := layout(t, c.policy, 6, 3, 9, 3)
		require.Equal(t, c.want, places(t, h, c.counts...), c.policy.String())
	}
}

func TestNextFitContinuesAtAHoleThatGrewDownward(t *testing.T) {
	h := layout(t, NextFit{}, 4, 4, 4)          // at 1, 6, 11
	a := alloc(t, h, 2*Granule)                 // at 1
	require.Equal(t, []int{3}, places(t, h, 1)) // the rover is the hole at 4
	b := alloc(t, h, 4*Granule)                 // at 6, so the rover is at 11
	require.Equal(t, 6, b.Offset()/Granule)
	require.NoError(t, h.Free(b))
	require.NoError(t, h.Free(a))
	require.Equal(t, []int{11}, places(t, h, 1), "freed holes further down wait for their turn")
}

func TestNextFitContinuesAtTheHoleThatAbsorbedItsOwn(t *testing.T) {
	h := layout(t, NextFit{}, 2, 2, 2) // at 1, 4, 7
	between := h.addressAt(t, 6)       // the block between the last two
	require.Equal(t, []int{1, 4}, places(t, h, 2, 1), "the rover is at 5")
	require.Equal(t, []int{5}, places(t, h, 1), "and now at 7")
	low := h.addressAt(t, 5)
	require.NoError(t, h.Free(low))
	require.NoError(t, h.Free(h.addressAt(t, 1)))
	require.NoError(t, h.Free(between)) // 5, 6 and 7 to 8 are one hole
	require.Equal(t, []int{5, 1}, places(t, h, 4, 1))
}

// addressAt returns the address of the block that begins at a granule.
func (h *Heap) addressAt(t testing.TB, granule uint32) Addr {
	t.Helper()
	i := h.holes.find(granule)
	require.NotZero(t, i)
	return h.holes.spans[i].addr
}

// A ruler chooses the hole that the test sets.
type ruler struct{ choice Hole }

func (r ruler) Choose(*Holes, int) Hole { return r.choice }
func (ruler) String() string            { return "ruler" }

func TestAllocReturnsErrPolicyForAnImpossibleChoice(t *testing.T) {
	for _, choice := range []Hole{-1, 2, 1000} {
		h := newHeap(t, 8*Granule, 0, ruler{choice})
		_, err := h.Alloc(1)
		require.ErrorIs(t, err, ErrPolicy)
		require.ErrorContains(t, err, "ruler")
		require.Zero(t, h.Stats().Blocks)
	}
	h := newHeap(t, 8*Granule, 0, ruler{1})
	_ = alloc(t, h, 7*Granule)
	_, err := h.Alloc(1)
	require.NoError(t, err)
	h = layout(t, FirstFit{}, 1, 2)
	h.config.Policy = ruler{h.holes.First()}
	_, err = h.Alloc(2 * Granule)
	require.ErrorIs(t, err, ErrPolicy, "too small a hole")
}
