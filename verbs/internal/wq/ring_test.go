package wq

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// entry owns a slice, as requests do.
type entry struct {
	id  int
	own []int
}

// The model is a plain list of pushed items that have not left.
func TestRingBehavesLikeAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(chunk-1, 3*chunk)).Draw(t, "depth")
		ring := NewRing[entry](depth)
		var model []int
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				if ring.Room() == 0 {
					t.Skip("full")
				}
				for range rapid.IntRange(1, ring.Room()).Draw(t, "n") {
					e := ring.Push()
					e.id, e.own = next, append(e.own[:0], next)
					model = append(model, next)
					next++
				}
			},
			"unpush": func(t *rapid.T) {
				n := rapid.IntRange(0, ring.Len()).Draw(t, "n")
				ring.Unpush(n)
				model = model[:len(model)-n]
			},
			"pop": func(t *rapid.T) {
				n := rapid.IntRange(0, ring.Len()).Draw(t, "n")
				ring.Pop(n)
				model = model[n:]
			},
			"remove": func(t *rapid.T) {
				if ring.Len() == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, ring.Len()-1).Draw(t, "i")
				ring.Remove(i)
				model = append(append([]int(nil), model[:i]...), model[i+1:]...)
			},
			"retain": func(t *rapid.T) {
				odd := rapid.IntRange(0, 1).Draw(t, "odd")
				ring.Retain(func(e *entry) bool { return e.id%2 == odd })
				var kept []int
				for _, id := range model {
					if id%2 == odd {
						kept = append(kept, id)
					}
				}
				model = kept
			},
			"": func(t *rapid.T) {
				require.Equal(t, depth, ring.Depth())
				require.Equal(t, len(model), ring.Len())
				require.Equal(t, depth-len(model), ring.Room())
				require.Equal(t, len(model) == 0, ring.First() == nil)
				for i, id := range model {
					require.Equal(t, entry{id, []int{id}}, *ring.At(i), "no two entries own one slice")
				}
			},
		})
	})
}

func TestEntriesOfARingDoNotMove(t *testing.T) {
	ring := NewRing[entry](4)
	ring.Push()
	kept := ring.Push()
	ring.Pop(1)
	ring.Push()
	require.Same(t, kept, ring.First())
}

func TestEmptyRingTakesNoMemory(t *testing.T) {
	ring := NewRing[entry](1 << 30)
	require.Nil(t, ring.First())
	require.Zero(t, ring.Len())
	require.Empty(t, ring.chunks)
	none := NewRing[entry](0)
	require.Zero(t, none.Room())
}

func TestRingMakesPlacesAsItReachesThem(t *testing.T) {
	prepared := 0
	ring := NewPreparedRing(2*chunk+1, func(places []entry) { prepared += len(places) })
	for range 10 * chunk {
		ring.Push()
		ring.Pop(1)
	}
	require.Equal(t, chunk, prepared, "an empty ring starts again at its first place")
	for range ring.Room() {
		ring.Push()
	}
	require.Equal(t, 2*chunk+1, prepared, "each place is prepared once")
}
