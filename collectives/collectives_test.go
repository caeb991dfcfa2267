package collectives_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
)

func TestMain(m *testing.M) { testjob.Main(m, bodies) }

func TestAllReduceGivesAllMembersTheSum(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		for _, n := range []int{0, 1, 100, 5000, 200000} {
			in, out := make([]int64, n), make([]int64, n)
			for i := range in {
				in[i] = int64(i * (r.Me + 1))
			}
			r.NoError(collectives.AllReduce(ctx, r.World, collectives.Sum[int64](), in, out))
			for i := range out {
				if want := int64(i * r.N * (r.N + 1) / 2); out[i] != want {
					r.Equal(want, out[i], "element %d of %d", i, n)
				}
			}
			r.NoError(collectives.AllReduce(ctx, r.World, collectives.Max[int64](), in, in), "in place")
			if n > 1 {
				r.EqualValues(r.N, in[1])
			}
		}
	})
}

// TestReduceScatterVGivesEachMemberItsBlockOfTheSum gives member k a block of k elements,
// in the opposite order of the members.
func TestReduceScatterVGivesEachMemberItsBlockOfTheSum(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		blocks := collectives.Blocks{Counts: make([]int, r.N), Offsets: make([]int, r.N)}
		total := 0
		for k := r.N - 1; k >= 0; k-- {
			blocks.Counts[k], blocks.Offsets[k] = k, total
			total += k
		}
		in, out := make([]int64, total), make([]int64, r.Me)
		for i := range in {
			in[i] = int64(i * (r.Me + 1))
		}
		r.NoError(collectives.ReduceScatterV(ctx, r.World, collectives.Sum[int64](), in, blocks, out))
		for i := range out {
			r.EqualValues((blocks.Offsets[r.Me]+i)*r.N*(r.N+1)/2, out[i], "element %d", i)
		}
	})
}

func TestExScanSumsVectorsOfEarlierMembers(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		for _, n := range []int{1, 1000, 20000} {
			in, out := make([]int64, n), make([]int64, n)
			for i := range in {
				in[i], out[i] = int64(i*(r.Me+1)), -1
			}
			r.NoError(collectives.ExScan(ctx, r.World, collectives.Sum[int64](), in, out))
			for i := range out {
				want := int64(i * r.Me * (r.Me + 1) / 2)
				if r.Me == 0 {
					want = -1 // not written
				}
				if out[i] != want {
					r.Equal(want, out[i], "element %d of %d", i, n)
				}
			}
		}
	})
}

func TestBroadcastGivesAllMembersTheDataOfTheRoot(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		for _, n := range []int{0, 1, 100, 5000, 200000} {
			for root := range r.N {
				data := make([]uint16, n)
				if r.Me == root {
					for i := range data {
						data[i] = uint16(i * 3)
					}
				}
				r.NoError(collectives.Broadcast(ctx, r.World, root, data))
				for i := range data {
					if data[i] != uint16(i*3) {
						r.Equal(uint16(i*3), data[i])
					}
				}
			}
		}
		r.NoError(collectives.Barrier(ctx, r.World))
	})
}
