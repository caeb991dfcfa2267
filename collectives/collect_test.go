package collectives_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
)

// All members draw the lengths of all from one seed. Each gives its own to the call only.
func TestCollectGathersBlocksOfLengthsThatMembersDoNotKnow(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		rng := rand.New(rand.NewPCG(1, 2))
		for round := range 30 {
			var want []int32
			counts := make([]int, r.N)
			var mine []int32
			for rank := range counts {
				if counts[rank] = rng.IntN(1 << rng.IntN(8)); rng.IntN(4) == 0 {
					counts[rank] = 0
				}
				for i := range counts[rank] {
					want = append(want, int32(round<<16+rank<<10+i))
				}
				if rank == r.Me {
					mine = want[len(want)-counts[rank]:]
				}
			}
			out := make([]int32, len(want)+rng.IntN(3))
			got, err := collectives.Collect(ctx, r.World, append([]int32{}, mine...), out)
			r.NoError(err)
			r.Equal(counts, got)
			r.Equal(want, append([]int32(nil), out[:len(want)]...))
			for _, rest := range out[len(want):] {
				r.Zero(rest)
			}
		}
	})
}

// One member has too little room. All get the same error, and the team goes on.
func TestCollectTellsAllMembersOfTheOneWithoutRoom(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		in, out := make([]int64, r.Me+1), make([]int64, 100)
		last := r.N - 1
		if r.Me == last {
			out = out[:1]
		}
		if r.N > 1 {
			_, err := collectives.Collect(ctx, r.World, in, out)
			r.ErrorIs(err, collectives.ErrLength)
			r.ErrorContains(err, "output of rank "+string(rune('0'+last))+" has 1 elements")
		}
		_, err := collectives.Collect(ctx, r.World, in, in[:1])
		r.ErrorIs(err, collectives.ErrOverlap)
		_, err = collectives.Collect(ctx, nil, in, out)
		r.Error(err)
		_, err = collectives.Collect(ctx, r.World, in, make([]int64, 100))
		r.NoError(err)
	})
}

func TestAllToAllStridedMovesEveryElementToItsPlace(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		for _, n := range []int{0, 1, 7, 300} {
			for _, from := range []int{1, 3} {
				for _, to := range []int{1, 2} {
					in, out := make([]int64, n*r.N*from+2), make([]int64, n*r.N*to+1)
					for m := range r.N {
						for i := range n {
							in[(m*n+i)*from] = int64(r.Me<<32 + m<<16 + i)
						}
					}
					r.NoError(collectives.AllToAllStrided(ctx, r.World, n, in, from, out, to))
					want := make([]int64, len(out))
					for m := range r.N {
						for i := range n {
							want[(m*n+i)*to] = int64(m<<32 + r.Me<<16 + i)
						}
					}
					r.Equal(want, out)
				}
			}
		}
	})
}

func TestAllToAllStridedRefusesWrongArguments(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		x := make([]int64, 4*r.N)
		for _, wrong := range []struct{ n, in, out int }{{-1, 1, 1}, {1, 0, 1}, {1, 1, -1}, {5, 1, 1}, {2, 4, 1}, {1 << 62, 1, 1}, {1, 1, 1 << 62}} {
			if r.N == 1 && wrong.n == 1 && wrong.out > 1 {
				continue // one element needs no stride
			}
			err := collectives.AllToAllStrided(ctx, r.World, wrong.n, x, wrong.in, x, wrong.out)
			r.ErrorIs(err, collectives.ErrLength, "%v", wrong)
		}
		r.Error(collectives.AllToAllStrided(ctx, nil, 1, x, 1, x, 1))
		r.NoError(collectives.AllToAllStrided(ctx, r.World, 2, x, 2, x, 2))
	})
}
