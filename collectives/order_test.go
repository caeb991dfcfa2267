package collectives_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
)

// terms are numbers whose sum depends on the order of addition.
func terms(rank, n int) []float64 {
	rnd := rand.New(rand.NewPCG(uint64(rank), 7))
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Ldexp(rnd.Float64()-0.5, rnd.IntN(60))
	}
	return v
}

func leftToRight(ranks, n int) []float64 {
	v := terms(0, n)
	for r := 1; r < ranks; r++ {
		for i, x := range terms(r, n) {
			v[i] += x
		}
	}
	return v
}

func TestDeterministicSumsHaveTheSameBitsAtAllMembers(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		sum := collectives.Sum[float64]()
		for _, n := range []int{1, 5, 600, 10_000} {
			want, in := leftToRight(r.N, n), terms(r.Me, n)
			call := collectives.AllReduceCall(sum, in, make([]float64, n))
			for _, name := range append([]string{""}, call.Algorithms(nil)...) {
				opts := []collectives.Option{collectives.Deterministic()}
				if name != "" {
					opts = append(opts, collectives.WithAlgorithm(name))
				}
				out := make([]float64, n)
				err := collectives.AllReduce(ctx, r.World, sum, in, out, opts...)
				if name != "" && err != nil {
					r.ErrorIs(err, collectives.ErrAlgorithm)
					continue
				}
				r.NoError(err)
				r.True(slices.Equal(want, out), "%d by %q", n, name)
			}
		}
	})
}

// TestTermsOfTheTestsSumToOtherBitsInAnotherOrder requires that the sums above change with the order.
func TestTermsOfTheTestsSumToOtherBitsInAnotherOrder(t *testing.T) {
	forward, backward := leftToRight(8, 100), terms(7, 100)
	for r := 6; r >= 0; r-- {
		for i, x := range terms(r, 100) {
			backward[i] += x
		}
	}
	require.NotEqual(t, forward, backward)
}

func TestPredefinedOperatorsComputeTheirFunctions(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		me := int32(r.Me + 1)
		check := func(op collectives.Op[int32], f func(a, b int32) int32) {
			want := int32(1)
			for rank := 1; rank < r.N; rank++ {
				want = f(want, int32(rank+1))
			}
			out := []int32{0}
			r.NoError(collectives.AllReduce(ctx, r.World, op, []int32{me}, out))
			r.Equal(want, out[0], op.Name())
		}
		check(collectives.Sum[int32](), func(a, b int32) int32 { return a + b })
		check(collectives.Prod[int32](), func(a, b int32) int32 { return a * b })
		check(collectives.Min[int32](), func(a, b int32) int32 { return min(a, b) })
		check(collectives.Max[int32](), func(a, b int32) int32 { return max(a, b) })
		check(collectives.And[int32](), func(a, b int32) int32 { return a & b })
		check(collectives.Or[int32](), func(a, b int32) int32 { return a | b })
		check(collectives.Xor[int32](), func(a, b int32) int32 { return a ^ b })
		check(collectives.NewSliceOp("last", false, func(dst, _, right []int32) { copy(dst, right) }),
			func(_, b int32) int32 { return b })

		most, least := make([]collectives.Loc[float32], 1), make([]collectives.Loc[float32], 1)
		mine := []collectives.Loc[float32]{{Value: float32(r.Me / 2), Index: int64(r.Me)}}
		r.NoError(collectives.AllReduce(ctx, r.World, collectives.MaxLoc[float32](), mine, most))
		r.NoError(collectives.AllReduce(ctx, r.World, collectives.MinLoc[float32](), mine, least))
		r.Equal(collectives.Loc[float32]{Value: float32((r.N - 1) / 2), Index: int64((r.N - 1) / 2 * 2)}, most[0])
		r.Equal(collectives.Loc[float32]{}, least[0])
	})
}

func TestCallsTakeElementsLargerThanAPiece(t *testing.T) {
	type large [300 << 10]byte
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		if c.Ranks > 3 {
			t.Skip("it takes memory")
		}
		op := collectives.NewOp("maximum", true, func(a, b large) large {
			for i := range a {
				a[i] = max(a[i], b[i])
			}
			return a
		})
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			in, out := make([]large, 1), make([]large, 1)
			in[0][7], in[0][len(large{})-1-r.Me] = byte(r.Me), 9
			r.NoError(collectives.AllReduce(ctx, r.World, op, in, out))
			r.EqualValues(r.N-1, out[0][7])
			for rank := range r.N {
				r.EqualValues(9, out[0][len(large{})-1-rank])
			}
		})
	})
}

func TestTeamsMakeCallsAtTheSameTime(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		half, err := r.World.Split(ctx, r.Me%2, 0)
		r.NoError(err)
		var both sync.WaitGroup
		results, errs := [2][]int{make([]int, 1), make([]int, 1)}, [2]error{}
		both.Go(func() {
			for range 50 {
				errs[0] = collectives.AllReduce(ctx, r.World, collectives.Sum[int](), []int{1}, results[0])
			}
		})
		both.Go(func() {
			for range 50 {
				errs[1] = collectives.AllReduce(ctx, half, collectives.Sum[int](), []int{1}, results[1])
			}
		})
		both.Wait()
		r.NoError(errs[0])
		r.NoError(errs[1])
		r.Equal(r.N, results[0][0])
		r.Equal(half.Size(), results[1][0])
	})
}
