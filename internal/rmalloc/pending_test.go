package rmalloc

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The model of Pending is a set of granules.
func TestPendingSortsAndJoinsRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const total = 40
		limit := rapid.IntRange(1, 8).Draw(t, "limit")
		p := NewPending(limit)
		var freed [total]bool
		blocks := 0
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				want, granules := runs(freed[:])
				require.Equal(t, len(want), p.Len())
				require.Equal(t, granules, p.Granules())
				require.Equal(t, blocks, p.Blocks())
				require.ElementsMatch(t, want, p.ranges)
			},
			"insert": func(t *rapid.T) {
				r := Range{rapid.IntRange(0, total-1).Draw(t, "offset"), rapid.IntRange(1, 4).Draw(t, "count")}
				r.Count = min(r.Count, total-r.Offset)
				after, overlap := freed, false
				for g := r.Offset; g < r.end(); g++ {
					overlap = overlap || freed[g]
					after[g] = true
				}
				err := p.Insert(r.Offset, r.Count)
				if overlap {
					require.ErrorIs(t, err, ErrCorrupt)
					return
				}
				if want, _ := runs(after[:]); len(want) > limit {
					require.ErrorIs(t, err, ErrFull)
					return
				}
				require.NoError(t, err)
				freed = after
				blocks++
			},
			"drain": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
					return
				}
				want, _ := runs(freed[:])
				mark := Range{-1, -1}
				require.Equal(t, append([]Range{mark}, want...), p.Drain([]Range{mark}))
				freed, blocks = [total]bool{}, 0
			},
		})
	})
}

// runs are the ranges of a set of granules, and its size.
func runs(set []bool) (all []Range, size int) {
	for g, in := range set {
		switch {
		case !in:
			continue
		case len(all) > 0 && all[len(all)-1].end() == g:
			all[len(all)-1].Count++
		default:
			all = append(all, Range{g, 1})
		}
		size++
	}
	return all, size
}

func TestInsertReturnsErrInvalidForRangesOutsideAHeap(t *testing.T) {
	p := NewPending(4)
	for _, r := range []Range{{-1, 1}, {0, 0}, {0, -1}, {MaxGranules, 1}, {0, MaxGranules + 1}, {1<<63 - 1, 2}, {1, 1<<63 - 1}} {
		require.ErrorIs(t, p.Insert(r.Offset, r.Count), ErrInvalid, "%v", r)
	}
	require.NoError(t, p.Insert(0, MaxGranules))
	require.Equal(t, 1, p.Len())
}

func TestPendingAllocatesNothingInSteadyState(t *testing.T) {
	p := NewPending(64)
	dst := make([]Range, 0, 64)
	round := func() {
		for i := range 64 {
			_ = p.Insert(i*37%64*3, 1+i%3)
		}
		dst = p.Drain(dst[:0])
	}
	round()
	require.Zero(t, testing.AllocsPerRun(100, round))
	require.Len(t, dst, 43)
}
