package window_test

import (
	"context"
	"math"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

func TestMinimaAndMaximaFollowTheOrderOfTheirType(t *testing.T) {
	testjob.All(t, 1, order)
}

func TestEmulatedMinimaAndMaximaFollowTheOrderOfTheirType(t *testing.T) {
	testjob.Config{Provider: "loop", Queued: true, Ranks: 3}.Run(t, order, plain())
}

func order(ctx context.Context, r *testjob.Rank) {
	extremes[int8](ctx, r, -128, -1, 0, 127)
	extremes[uint8](ctx, r, 0, 1, 128, 255)
	extremes[int16](ctx, r, math.MinInt16, -1, 0, math.MaxInt16)
	extremes[uint16](ctx, r, 0, 1, 1<<15, math.MaxUint16)
	extremes[int32](ctx, r, math.MinInt32, -1, 0, math.MaxInt32)
	extremes[uint32](ctx, r, 0, 1, 1<<31, math.MaxUint32)
	extremes[int64](ctx, r, math.MinInt64, -1, 0, math.MaxInt64)
	extremes[uint64](ctx, r, 0, 1, 1<<63, math.MaxUint64)
	extremes(ctx, r, float32(math.Inf(-1)), -1.5, float32(math.Copysign(0, -1)), 0, 1.5, float32(math.Inf(1)))
	extremes(ctx, r, math.Inf(-1), -1.5, math.Copysign(0, -1), 0, 1.5, math.Inf(1))
	notANumber[float32](ctx, r)
	notANumber[float64](ctx, r)
}

// extremes takes minima and maxima of all pairs of values, which ascend.
func extremes[T window.Number](ctx context.Context, r *testjob.Rank, values ...T) {
	w := allocate[T](ctx, r, 3)
	target := r.Right()
	for i, a := range values {
		for j, b := range values {
			least, most := values[min(i, j)], values[max(i, j)]
			r.NoError(window.AtomicStore(ctx, w, target, 1, a))
			old, err := window.FetchMin(ctx, w, target, 1, b)
			r.NoError(err)
			same(r, a, old)
			old, err = window.Swap(ctx, w, target, 1, a)
			r.NoError(err)
			same(r, least, old)
			old, err = window.FetchMax(ctx, w, target, 1, b)
			r.NoError(err)
			same(r, a, old)
			r.NoError(window.AtomicMin(ctx, w, target, 1, a))
			old, err = window.Swap(ctx, w, target, 1, a)
			r.NoError(err)
			same(r, a, old)
			r.NoError(window.AtomicMax(ctx, w, target, 1, b))
			old, err = window.AtomicLoad(ctx, w, target, 1)
			r.NoError(err)
			same(r, most, old)
		}
	}
	ends, err := window.AtomicLoad(ctx, w, target, 0)
	r.NoError(err)
	r.Zero(ends, "a neighbor was touched")
	r.NoError(w.Free(ctx))
}

// same compares signed zeros too.
func same[T window.Number](r *testjob.Rank, want, got T) {
	r.Equal(want, got)
	r.Equal(math.Signbit(float64(want)), math.Signbit(float64(got)))
}

func notANumber[T float32 | float64](ctx context.Context, r *testjob.Rank) {
	w := allocate[T](ctx, r, 1)
	nan := T(math.NaN())
	for _, op := range []func(context.Context, *window.Window[T], int, int, T) (T, error){window.FetchMin[T], window.FetchMax[T], window.FetchAdd[T]} {
		for _, pair := range [][2]T{{nan, 1}, {1, nan}} {
			r.NoError(window.AtomicStore(ctx, w, r.Right(), 0, pair[0]))
			_, err := op(ctx, w, r.Right(), 0, pair[1])
			r.NoError(err)
			now, err := window.AtomicLoad(ctx, w, r.Right(), 0)
			r.NoError(err)
			r.True(now != now)
		}
	}
	r.NoError(w.Free(ctx))
}

func TestFloatSumsMinimaAndMaximaUnderContention(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		sum, ends := allocate[float32](ctx, r, 1), allocate[int16](ctx, r, 2)
		n := roundsOf(r.N)
		for i := range n {
			fine(r, window.AtomicAdd(ctx, sum, 0, 0, 0.5))
			fine(r, window.AtomicMax(ctx, ends, 0, 0, int16(i*r.N+r.Me)))
			fine(r, window.AtomicMin(ctx, ends, 0, 1, -int16(i*r.N+r.Me)))
		}
		r.NoError(sum.Flush(ctx, 0))
		r.NoError(ends.Fence(ctx))
		if r.Me == 0 {
			last := int16(n*r.N - 1)
			r.Equal(float32(n*r.N)/2, sum.Local()[0])
			r.Equal([]int16{last, -last}, ends.Local())
		}
	})
}
