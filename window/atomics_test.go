package window_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/window"
)

// plain hides extended atomics; FETCH_ADD and CMP_SWAP remain.
func plain() runtime.Option {
	return disturbed(faulty.Plan{HideExtendedAtomics: true, HideBlocks: true, HideMapper: true})
}

func TestAtomicsComputeAtEveryWidth(t *testing.T) {
	testjob.All(t, 1, computeAtEveryWidth)
}

func TestAtomicsComputeAtEveryWidthFromFetchAddAndCompareSwap(t *testing.T) {
	testjob.Config{Provider: "loop", Queued: true, Ranks: 3}.Run(t, computeAtEveryWidth, plain())
}

func computeAtEveryWidth(ctx context.Context, r *testjob.Rank) {
	compute[int8](ctx, r)
	compute[uint8](ctx, r)
	compute[int16](ctx, r)
	compute[uint16](ctx, r)
	compute[int32](ctx, r)
	compute[uint32](ctx, r)
	compute[int64](ctx, r)
	compute[uint64](ctx, r)
	compute[int](ctx, r)
	compute[uintptr](ctx, r)
	type flags uint16
	compute[flags](ctx, r)
	floats[float32](ctx, r)
	floats[float64](ctx, r)
}

// compute compares random atomics on one element with the same in this rank.
func compute[T window.Integer](ctx context.Context, r *testjob.Rank) {
	const n = 9
	w := allocate[T](ctx, r, n)
	rnd := rand.New(rand.NewPCG(uint64(r.Me), 42))
	model := [n]T{}
	for range 30 {
		i, v := rnd.IntN(n), T(rnd.Uint64())
		old, err := step(ctx, w, r.Right(), i, v, &model[i], rnd.IntN(12))
		r.NoError(err)
		r.Equal(old.want, old.got, "%T", v)
	}
	r.NoError(w.Flush(ctx, r.Right()))
	back := make([]T, n)
	r.NoError(w.Get(ctx, r.Right(), 0, back))
	r.Equal(model[:], back, "and no neighbor was touched")
	r.NoError(w.Free(ctx))
}

// result holds an atomic's result and the expected one.
type result[T any] struct{ got, want T }

// step does one operation in the window and in the model.
func step[T window.Integer](ctx context.Context, w *window.Window[T], target, i int, v T, m *T, op int) (res result[T], err error) {
	before := *m
	res.want = before
	switch op {
	case 0:
		*m += v
		res.got, err = window.FetchAdd(ctx, w, target, i, v)
	case 1:
		*m &= v
		res.got, err = window.FetchAnd(ctx, w, target, i, v)
	case 2:
		*m |= v
		res.got, err = window.FetchOr(ctx, w, target, i, v)
	case 3:
		*m ^= v
		res.got, err = window.FetchXor(ctx, w, target, i, v)
	case 4:
		*m = v
		res.got, err = window.Swap(ctx, w, target, i, v)
	case 5:
		*m = v
		res.got, err = window.CompareSwap(ctx, w, target, i, before, v)
	case 6:
		res.got, err = window.CompareSwap(ctx, w, target, i, before+1, v)
	case 7:
		*m = v
		return result[T]{}, window.AtomicStore(ctx, w, target, i, v)
	case 8:
		*m += v
		return result[T]{}, window.AtomicAdd(ctx, w, target, i, v)
	case 9:
		*m ^= v
		return result[T]{}, window.AtomicXor(ctx, w, target, i, v)
	case 10:
		*m |= v
		return result[T]{}, window.AtomicOr(ctx, w, target, i, v)
	case 11:
		*m &= v
		return result[T]{}, window.AtomicAnd(ctx, w, target, i, v)
	}
	if err == nil {
		var now T
		if now, err = window.AtomicLoad(ctx, w, target, i); now != *m {
			res.got, res.want = now, *m
		}
	}
	return res, err
}

// floats checks sums, and that comparison is by bits.
func floats[T float32 | float64](ctx context.Context, r *testjob.Rank) {
	w := allocate[T](ctx, r, 3)
	old, err := window.FetchAdd(ctx, w, r.Right(), 1, 1.5)
	r.NoError(err)
	r.Zero(old)
	old, err = window.FetchAdd(ctx, w, r.Right(), 1, -4)
	r.NoError(err)
	r.EqualValues(1.5, old)
	old, err = window.CompareSwap(ctx, w, r.Right(), 1, -2.5, T(math.NaN()))
	r.NoError(err)
	r.EqualValues(-2.5, old)
	seen, err := window.CompareSwap(ctx, w, r.Right(), 1, T(math.NaN()), T(math.Copysign(0, -1)))
	r.NoError(err)
	r.True(seen != seen, "the NaN that was there, which equals itself bit by bit")
	_, err = window.CompareSwap(ctx, w, r.Right(), 1, 0, 9)
	r.NoError(err)
	now, err := window.AtomicLoad(ctx, w, r.Right(), 1)
	r.NoError(err)
	r.True(now == 0 && math.Signbit(float64(now)), "minus zero is not zero")
	old, err = window.Swap(ctx, w, r.Right(), 1, 8)
	r.NoError(err)
	r.Zero(old)
	r.NoError(w.Fence(ctx))
	r.Equal([]T{0, 8, 0}, w.Local())
	r.NoError(w.Free(ctx))
}

const threads = 3

// roundsOf returns how often each goroutine of n ranks adds, an even number: all of them
// add about as often in jobs of any size.
func roundsOf(n int) int { return 2 * (testwatch.Rounds(60) / n) }

func TestSumsUnderContentionAreExact(t *testing.T) {
	testjob.All(t, 1, contend)
}

func TestEmulatedSumsUnderContentionAreExact(t *testing.T) {
	testjob.Config{Provider: "loop", Queued: true, Ranks: 3}.Run(t, contend, plain())
}

// contend has every rank's goroutines add to the same few elements of rank 0.
func contend(ctx context.Context, r *testjob.Rank) {
	words := allocate[int64](ctx, r, 2)
	bytes := allocate[uint8](ctx, r, 8) // neighbors in one word
	reals := allocate[float64](ctx, r, 1)
	bits := allocate[uint32](ctx, r, 1)
	var group sync.WaitGroup
	rounds, seen := roundsOf(r.N), make([][]int64, threads)
	for g := range threads {
		group.Go(func() {
			for range rounds {
				old, err := window.FetchAdd(ctx, words, 0, 0, 1)
				seen[g] = append(seen[g], old)
				fine(r, err)
				fine(r, window.AtomicAdd(ctx, words, 0, 1, -3))
				fine(r, window.AtomicAdd(ctx, bytes, 0, g, 1))
				_, err = window.FetchAdd(ctx, bytes, 0, 7, 5)
				fine(r, err)
				_, err = window.FetchAdd(ctx, reals, 0, 0, 0.5)
				fine(r, err)
				fine(r, window.AtomicXor(ctx, bits, 0, 0, 1<<g))
			}
		})
	}
	group.Wait()
	r.NoError(words.Fence(ctx))
	tickets(ctx, r, seen)
	if r.Me == 0 {
		total := r.N * threads * rounds
		r.Equal([]int64{int64(total), int64(-3 * total)}, words.Local())
		each := uint8(r.N * rounds)
		r.Equal([]uint8{each, each, each, 0, 0, 0, 0, uint8(5 * total)}, bytes.Local())
		r.Equal([]float64{float64(total) / 2}, reals.Local())
		r.Equal([]uint32{0}, bits.Local(), "an even number of flips")
	}
}

func fine(r *testjob.Rank, err error) {
	if err != nil {
		r.Fail("an atomic failed", "%v", err)
	}
}

// tickets checks that the values that FetchAdd returned were handed out once
// each, in growing order within a goroutine.
func tickets(ctx context.Context, r *testjob.Rank, seen [][]int64) {
	w := allocate[uint8](ctx, r, r.N*threads*roundsOf(r.N))
	for _, list := range seen {
		for i, v := range list {
			if i > 0 {
				r.Greater(v, list[i-1])
			}
			r.NoError(window.AtomicAdd(ctx, w, 0, int(v), 1))
		}
	}
	r.NoError(w.Fence(ctx))
	if r.Me == 0 {
		for i, times := range w.Local() {
			r.EqualValues(1, times, "ticket %d", i)
		}
	}
	r.NoError(w.Free(ctx))
}

func TestCompareSwapHasOneWinner(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[uint16](ctx, r, 64)
		won := allocate[int32](ctx, r, 64)
		for i := range 64 {
			seen, err := window.CompareSwap(ctx, w, 0, i, 0, uint16(r.Me+1))
			r.NoError(err)
			if seen == 0 {
				r.NoError(window.AtomicAdd(ctx, won, 0, i, 1))
			}
		}
		r.NoError(won.Fence(ctx))
		if r.Me == 0 {
			for i, n := range won.Local() {
				r.EqualValues(1, n, "element %d", i)
				r.NotZero(w.Local()[i])
			}
		}
	})
}
