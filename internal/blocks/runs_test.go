package blocks

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRunsSurviveTheirEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Run {
			return Run{rapid.Int().Draw(t, "at"), int(rapid.Uint32().Draw(t, "block")), int(rapid.Uint32().Draw(t, "count")), rapid.Int().Draw(t, "stride")}
		})).Draw(t, "runs")
		b := make([]byte, len(runs)*RunSize+rapid.IntRange(0, RunSize-1).Draw(t, "part of a run"))
		PutRuns(b, runs)
		require.Equal(t, runs, AppendRuns([]Run{}, b))
	})
}

// TestSpanHoldsEveryByte compares Span with a loop over all blocks.
func TestSpanHoldsEveryByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.IntRange(-50, 50)
		runs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Run {
			return Run{small.Draw(t, "at"), rapid.IntRange(1, 9).Draw(t, "block"), rapid.IntRange(1, 9).Draw(t, "count"), small.Draw(t, "stride")}
		}), 1, 5).Draw(t, "runs")
		bytes, low, high := 0, math.MaxInt, math.MinInt
		for _, r := range runs {
			for i := range r.Count {
				at := r.At + i*r.Stride
				for k := range r.Block {
					place, left := Place(runs, bytes+k)
					require.Equal(t, []int{at + k, r.Block - k}, []int{place, left})
				}
				bytes, low, high = bytes+r.Block, min(low, at), max(high, at+r.Block)
			}
		}
		size, from, to, ok := Span(runs)
		require.True(t, ok)
		require.Equal(t, []int{bytes, low, high}, []int{size, from, to})
	})
}

func TestSpanRefusesWhatNoMemoryHolds(t *testing.T) {
	for name, r := range map[string]Run{
		"no byte":      {Block: 0, Count: 1},
		"no block":     {Block: 1, Count: 0},
		"minus":        {Block: -1, Count: -1},
		"far":          {At: math.MaxInt, Block: 1, Count: 1},
		"far ahead":    {At: math.MinInt, Block: 1, Count: 1},
		"wide":         {Block: 1, Count: 2, Stride: math.MaxInt},
		"wide ahead":   {Block: 1, Count: 2, Stride: math.MinInt},
		"much in all":  {Block: math.MaxUint32, Count: math.MaxUint32},
		"many strides": {Block: 1, Count: math.MaxUint32, Stride: 1 << 40},
	} {
		_, _, _, ok := Span([]Run{{Block: 1, Count: 1}, r})
		require.False(t, ok, name)
	}
	_, _, _, ok := Span([]Run{{Block: 1, Count: 1, Stride: math.MinInt}})
	require.True(t, ok, "one block has no stride")
}
