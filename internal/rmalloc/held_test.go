package rmalloc

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func newHeld(t require.TestingT, size, blocks int) *Held {
	h, err := NewHeld(size, blocks)
	require.NoError(t, err)
	return h
}

func TestHeldFindsBlocksUntilTheirFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const total, blocks = 30, 12
		h := newHeld(t, total*Granule, blocks)
		type block struct{ offset, length int }
		held, gone := map[Addr]block{}, []Addr{0}
		begins := map[int]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.Equal(t, len(held), h.Len())
				for a, b := range held {
					offset, length, err := h.Range(a)
					require.NoError(t, err)
					require.Equal(t, block{offset / Granule, length}, b)
				}
			},
			"take": func(t *rapid.T) {
				b := block{rapid.IntRange(-1, total+1).Draw(t, "offset"), rapid.IntRange(-1, 3*Granule).Draw(t, "length")}
				a, err := h.Take(b.offset, b.length)
				if b.offset < 0 || b.offset >= total || b.length < 0 || b.offset*Granule+b.length > total*Granule ||
					begins[b.offset] || len(held) == blocks {
					require.ErrorIs(t, err, ErrCorrupt)
					return
				}
				require.NoError(t, err)
				require.NotContains(t, held, a)
				require.NotContains(t, gone, a)
				held[a], begins[b.offset] = b, true
			},
			"free": func(t *rapid.T) {
				for a, b := range held {
					r, err := h.Free(a)
					require.NoError(t, err)
					require.Equal(t, Range{b.offset, Granules(b.length)}, r)
					delete(held, a)
					delete(begins, b.offset)
					gone = append(gone, a)
					break
				}
			},
			"stale": func(t *rapid.T) {
				a := rapid.SampledFrom(gone).Draw(t, "gone")
				_, err := h.Free(a)
				require.ErrorIs(t, err, ErrStale)
				_, _, err = h.Range(a)
				require.ErrorIs(t, err, ErrStale)
			},
		})
	})
}

func TestHeldAllocatesNothingInSteadyState(t *testing.T) {
	h := newHeld(t, 1<<20, 0)
	var live [50]Addr
	i := 0
	step := func() {
		at := i % len(live)
		_, _ = h.Free(live[at])
		live[at], _ = h.Take(at*7, 100)
		i++
	}
	for range live {
		step()
	}
	require.Zero(t, testing.AllocsPerRun(1000, step))
	require.Equal(t, len(live), h.Len())
	require.Less(t, h.memory(), 64*40)
}
