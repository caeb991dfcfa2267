package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/window"
)

// sides are layouts of as many elements at the target and here, as lists of places.
var sides = []struct {
	name         string
	there, here  window.Blocks
	toAt, fromAt func(i int) int
	n            int
}{
	{"column of a row", window.Strided(300, 1, 3), window.Blocks{}, by(1, 3), by(1, 1), 300},
	{"row of a column", window.Strided(1, 300, 0), window.Strided(300, 1, 2), by(1, 1), by(1, 2), 300},
	{"short blocks of others", window.Strided(40, 6, 9), window.Strided(60, 4, 11), by(6, 9), by(4, 11), 240},
	{"long blocks", window.Strided(3, 1200, 1300), window.Strided(2, 1800, 1801), by(1200, 1300), by(1800, 1801), 3600},
	{"many", window.Strided(4500, 1, 1), window.Strided(2250, 2, 3), by(1, 1), by(2, 3), 4500},
	{"one element often", window.Indexed(make([]int, 70), 1), window.Strided(70, 1, 3), func(int) int { return 0 }, by(1, 3), 70},
}

// by returns the places of blocks at a stride.
func by(block, stride int) func(i int) int {
	return func(i int) int { return i/block*stride + i%block }
}

// TestAccumulateBlocksAgreesWithALoop compares all forms with a loop over the elements, whose values are the
// same on every configuration.
func TestAccumulateBlocksAgreesWithALoop(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			agreesWithALoop[int16](ctx, r)
			if testwatch.Race {
				return // other types make accesses at the same places
			}
			agreesWithALoop[float64](ctx, r)
			agreesWithALoop[complex64](ctx, r)
		})
	})
}

func agreesWithALoop[T int16 | float64 | complex64](ctx context.Context, r *testjob.Rank) {
	const elements = 9000
	w := allocate[T](ctx, r, elements)
	model, src, old := make([]T, elements), make([]T, elements), make([]T, elements)
	for i := range src {
		src[i] = 1
		if i%50 > 0 {
			src[i] += src[i-1]
		}
	}
	sum := window.Sum[T]()
	for _, s := range sides {
		seen := make([]T, elements)
		for i := range s.n { // old and src are apart
			at, from := s.toAt(i), s.fromAt(i)
			model[at] += src[from] + src[from]
		}
		for i := range s.n {
			at, from := s.toAt(i), s.fromAt(i)
			seen[from] = model[at]
			model[at] += src[from]
		}
		r.NoError(window.AccumulateBlocks(ctx, w, r.Right(), 0, s.there, src, s.here, sum), s.name)
		r.NoError(started(ctx)(window.StartAccumulateBlocks(ctx, w, r.Right(), 0, s.there, src, s.here, sum)), s.name)
		clear(old)
		r.NoError(window.GetAccumulateBlocks(ctx, w, r.Right(), 0, s.there, src, old, s.here, sum), s.name)
		r.Equal(seen, old, s.name)
		clear(seen)
		for i := range s.n {
			seen[s.fromAt(i)] = model[s.toAt(i)]
		}
		clear(old)
		r.NoError(started(ctx)(window.StartGetAccumulateBlocks(ctx, w, r.Right(), 0, s.there, nil, old, s.here, window.NoOp[T]())), s.name)
		r.Equal(seen, old, s.name)
		r.NoError(w.Fence(ctx))
		r.Equal(model, w.Local(), s.name)
		r.NoError(w.Fence(ctx))
	}
}
