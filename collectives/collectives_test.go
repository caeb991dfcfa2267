package collectives_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
)

func TestMain(m *testing.M) { testjob.Main(m, bodies) }

func TestAllReduceSumsEverywhere(t *testing.T) {
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

func TestBroadcastGivesTheRootsData(t *testing.T) {
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
