package window_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/window"
)

// TestAccumulatesComputeInEveryType compares random accumulates with the same in this rank.
func TestAccumulatesComputeInEveryType(t *testing.T) { testjob.All(t, 1, accumulateEveryType) }

func TestEmulatedAccumulatesComputeInEveryType(t *testing.T) {
	testjob.Config{Provider: "loop", Queued: true, Ranks: 3}.Run(t, accumulateEveryType, plain())
}

func accumulateEveryType(ctx context.Context, r *testjob.Rank) {
	accumulateIntegers[int8](ctx, r)
	accumulateIntegers[uint8](ctx, r)
	accumulateIntegers[int16](ctx, r)
	accumulateIntegers[uint16](ctx, r)
	accumulateIntegers[int32](ctx, r)
	accumulateIntegers[uint32](ctx, r)
	accumulateIntegers[int64](ctx, r)
	accumulateIntegers[uint64](ctx, r)
	accumulateIntegers[uintptr](ctx, r)
	type flags uint16
	accumulateIntegers[flags](ctx, r)
	accumulateFloats[float32](ctx, r)
	accumulateFloats[float64](ctx, r)
	type phase complex64
	accumulateAtRandom(ctx, r, scalarOps[phase](), func(rnd *rand.Rand) phase {
		return phase(complex(float32(rnd.IntN(9)-4), float32(rnd.IntN(9)-4)))
	})
	accumulatePairs(ctx, r)
}

// accumulatePairs updates elements of 16 bytes, unless devices apply the atomics: they have
// none.
func accumulatePairs(ctx context.Context, r *testjob.Rank) {
	w := allocate[complex128](ctx, r, 1)
	_, err := window.FetchOp(ctx, w, r.Right(), 0, 0, window.NoOp[complex128]())
	r.NoError(w.Free(ctx))
	if errors.Is(err, driver.ErrUnsupported) {
		return
	}
	r.NoError(err)
	accumulateAtRandom(ctx, r, scalarOps[complex128](), func(rnd *rand.Rand) complex128 {
		return complex(float64(rnd.IntN(9)-4), float64(rnd.IntN(9)-4))
	})
	contendForSlice[complex128](ctx, r)
}

// An operator is one of package window with its model.
type operator[T any] struct {
	name  string
	op    window.Op[T]
	model func(element, operand T) T
}

func scalarOps[T window.Scalar]() []operator[T] {
	return []operator[T]{
		{"Sum", window.Sum[T](), func(a, b T) T { return a + b }},
		{"Prod", window.Prod[T](), func(a, b T) T { return a * b }},
		{"Replace", window.Replace[T](), func(_, b T) T { return b }},
		{"NoOp", window.NoOp[T](), func(a, _ T) T { return a }},
	}
}

func numberOps[T window.Number]() []operator[T] {
	return append(scalarOps[T](),
		operator[T]{"Min", window.Min[T](), func(a, b T) T { return min(a, b) }},
		operator[T]{"Max", window.Max[T](), func(a, b T) T { return max(a, b) }})
}

func accumulateIntegers[T window.Integer](ctx context.Context, r *testjob.Rank) {
	ops := append(numberOps[T](),
		operator[T]{"And", window.And[T](), func(a, b T) T { return a & b }},
		operator[T]{"Or", window.Or[T](), func(a, b T) T { return a | b }},
		operator[T]{"Xor", window.Xor[T](), func(a, b T) T { return a ^ b }})
	accumulateAtRandom(ctx, r, ops, func(rnd *rand.Rand) T { return T(rnd.Uint64()) })
}

func accumulateFloats[T float32 | float64](ctx context.Context, r *testjob.Rank) {
	accumulateAtRandom(ctx, r, numberOps[T](), func(rnd *rand.Rand) T { return T(rnd.IntN(17)-8) / 4 })
}

// accumulateAtRandom makes calls of all kinds on the window of the rank to the right, and the
// same on a slice.
func accumulateAtRandom[T window.Scalar](ctx context.Context, r *testjob.Rank, ops []operator[T], draw func(*rand.Rand) T) {
	const n = 13
	w := allocate[T](ctx, r, n)
	rnd := rand.New(rand.NewPCG(uint64(r.Me), 7))
	model, target := make([]T, n), r.Right()
	for round := range 40 {
		at := rnd.IntN(n)
		src, old := make([]T, rnd.IntN(n-at+1)), make([]T, 0, n)
		for i := range src {
			src[i] = draw(rnd)
		}
		o := ops[rnd.IntN(len(ops))]
		want := append([]T(nil), model[at:at+len(src)]...)
		sent := slices.Clone(src)
		for i, v := range src {
			model[at+i] = o.model(model[at+i], v)
		}
		var err error
		switch kind := rnd.IntN(6); {
		case kind == 0:
			r.NoError(window.Accumulate(ctx, w, target, at, src, o.op))
			clear(sent) // the call has the operands
			clear(src)
		case kind == 1:
			r.NoError(started(ctx)(window.StartAccumulate(ctx, w, target, at, src, o.op)))
		case kind == 2:
			old = old[:len(src)]
			r.NoError(window.GetAccumulate(ctx, w, target, at, src, old, o.op))
		case kind == 3:
			old = src
			r.NoError(started(ctx)(window.StartGetAccumulate(ctx, w, target, at, src, old, o.op)))
		case len(src) == 0:
		default:
			copy(model[at+1:], want[1:]) // one element only
			old, want = old[:1], want[:1]
			if kind == 4 {
				old[0], err = window.FetchOp(ctx, w, target, at, src[0], o.op)
			} else {
				err = started(ctx)(window.StartFetchOp(ctx, w, target, at, src[0], o.op, &old[0]))
			}
			r.NoError(err)
		}
		if len(old) > 0 {
			r.Equal(want, old, "round %d, %s", round, o.name)
		}
		if len(old) == 0 || &old[0] != &src[0] {
			r.Equal(sent, src, "round %d, %s changed its operands", round, o.name)
		}
	}
	r.NoError(w.Flush(ctx, target))
	back := make([]T, n)
	r.NoError(window.GetAccumulate(ctx, w, target, 0, nil, back, window.NoOp[T]()))
	r.Equal(model, back)
	r.NoError(w.Free(ctx))
}

// TestLongAccumulatesArriveWhole has slices of several requests.
func TestLongAccumulatesArriveWhole(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		const n = 20_001
		w := allocate[int64](ctx, r, n)
		src, old := make([]int64, n), make([]int64, n)
		for i := range src {
			src[i] = int64(i * (r.Me + 1))
		}
		target := r.Right()
		r.NoError(window.Accumulate(ctx, w, target, 0, src, window.Sum[int64]()))
		r.NoError(started(ctx)(window.StartAccumulate(ctx, w, target, 0, src, window.Sum[int64]())))
		r.NoError(started(ctx)(window.StartGetAccumulate(ctx, w, target, 0, src, old, window.Sum[int64]())))
		for i := range old {
			if old[i] != 2*src[i] {
				r.FailNow("wrong earlier value", "element %d was %d instead of %d", i, old[i], 2*src[i])
			}
		}
		r.NoError(w.Fence(ctx))
		for i, v := range w.Local() {
			if want := int64(3 * i * (r.Left() + 1)); v != want {
				r.FailNow("wrong sum", "element %d is %d instead of %d", i, v, want)
			}
		}
	})
}

// TestAccumulatesUnderContentionAreExact has all ranks and goroutines add to the same slices of
// rank 0, by calls of each kind.
func TestAccumulatesUnderContentionAreExact(t *testing.T) { testjob.All(t, 1, contendForSlices) }

func TestEmulatedAccumulatesUnderContentionAreExact(t *testing.T) {
	testjob.Config{Provider: "loop", Queued: true, Ranks: 3}.Run(t, contendForSlices, plain())
}

func contendForSlices(ctx context.Context, r *testjob.Rank) {
	contendForSlice[int64](ctx, r)
	contendForSlice[uint16](ctx, r)
	contendForSlice[int8](ctx, r)
	contendForSlice[float32](ctx, r)
	contendForSlice[complex64](ctx, r)
}

func contendForSlice[T window.Scalar](ctx context.Context, r *testjob.Rank) {
	const n = 7
	w := allocate[T](ctx, r, n)
	done := make(chan struct{})
	rounds := roundsOf(r.N)
	for range threads {
		go func() {
			defer func() { done <- struct{}{} }()
			ones, old := []T{1, 1, 1, 1, 1, 1, 1}, make([]T, n)
			for range rounds {
				fine(r, window.Accumulate(ctx, w, 0, 0, ones, window.Sum[T]()))
				fine(r, window.GetAccumulate(ctx, w, 0, 1, ones[1:], old[1:], window.Sum[T]()))
				_, err := window.FetchOp(ctx, w, 0, n-1, 1, window.Sum[T]())
				fine(r, err)
			}
		}()
	}
	for range threads {
		<-done
	}
	r.NoError(w.Fence(ctx))
	if r.Me == 0 {
		var once, want T
		for range r.N * threads * rounds {
			once++
		}
		want = once + once
		r.Equal([]T{once, want, want, want, want, want, want + once}, w.Local(), "%T", want)
	}
	r.NoError(w.Free(ctx))
}

func TestAccumulateReturnsErrors(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int32](ctx, r, 4)
		four, sum := make([]int32, 4), window.Sum[int32]()
		for _, at := range []int{-1, 1, 5} {
			r.ErrorIs(window.Accumulate(ctx, w, r.Right(), at, four, sum), window.ErrRange)
			r.ErrorIs(window.GetAccumulate(ctx, w, r.Right(), at, four, four, sum), window.ErrRange)
		}
		r.ErrorIs(window.GetAccumulate(ctx, w, r.Right(), 0, four, four[:3], sum), window.ErrRange)
		r.ErrorIs(window.Accumulate(ctx, w, r.N, 0, four, sum), window.ErrRange)
		_, err := window.FetchOp(ctx, w, r.Right(), 4, 1, sum)
		r.ErrorIs(err, window.ErrRange)
		_, err = window.FetchOp(ctx, w, r.Right(), 0, 1, window.Op[int32]{})
		r.ErrorIs(err, window.ErrOp)
		_, err = window.StartFetchOp(ctx, w, r.Right(), 0, 1, window.Op[int32]{}, new(int32))
		r.ErrorIs(err, window.ErrOp)
		_, err = window.StartFetchOp(ctx, w, r.Right(), -1, 1, sum, new(int32))
		r.ErrorIs(err, window.ErrRange)
		r.ErrorIs(window.Accumulate(ctx, w, r.Right(), 0, four, window.Op[int32]{}), window.ErrOp)
		r.NoError(window.Accumulate(ctx, w, window.Null, 0, four, sum))
		r.NoError(window.Accumulate(ctx, w, r.Right(), 0, []int32{1, 2}, window.NoOp[int32]()))
		r.NoError(w.Fence(ctx))
		r.Equal(make([]int32, 4), w.Local())
	})
}

// TestStartedAtomicsTakeEffectInOrder starts atomics on one element without a wait between.
func TestStartedAtomicsTakeEffectInOrder(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		const n = 50
		w := allocate[uint32](ctx, r, r.N+2)
		target, at := r.Right(), r.Me
		seen, requests := make([]uint32, 2*n), make([]window.Request, 2*n)
		for i := range n {
			var err error
			v := uint32(i + 1)
			requests[2*i], err = window.StartFetchOp(ctx, w, target, at, v, window.Max[uint32](), &seen[2*i])
			r.NoError(err)
			requests[2*i+1], err = window.StartCompareSwap(ctx, w, target, at, v, v, &seen[2*i+1])
			r.NoError(err)
		}
		r.NoError(window.WaitAll(ctx, requests))
		for i := range n {
			r.Equal([]uint32{uint32(i), uint32(i + 1)}, seen[2*i:2*i+2])
		}
		r.NoError(w.Fence(ctx))
	})
}
