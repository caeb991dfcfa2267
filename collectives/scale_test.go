package collectives_test

import (
	"context"
	"slices"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// treeArity is the most ranks below another in the tree of barriers.
const treeArity = 8

// TestShortAllReduceConnectsRanksToRankZero counts the ranks to which each rank of a job of 64
// has connected: its neighbors in the tree of the barrier and rank 0. Rank 0 connects to all.
func TestShortAllReduceConnectsRanksToRankZero(t *testing.T) {
	ranks := 64
	if testwatch.Race {
		ranks = 24
	}
	testjob.Job{Ranks: ranks, Provider: "shm"}.Run(t, "short reductions")
}

// TestRootedCallsConnectRanksToTheRoot counts likewise after calls with a root, in a row and
// between short reductions. Rank 0 is the root.
func TestRootedCallsConnectRanksToTheRoot(t *testing.T) {
	ranks := 64
	if testwatch.Race {
		ranks = 24
	}
	testjob.Job{Ranks: ranks, Provider: "shm"}.Run(t, "rooted calls")
}

// rootedCalls is the body of that test.
func rootedCalls(ctx context.Context, r *testjob.Rank) {
	sum, one := collectives.Sum[int](), []int{0}
	blocks := make([]int, r.N)
	rooted := []func() error{
		func() error { return collectives.Broadcast(ctx, r.World, 0, one) },
		func() error { return collectives.Scatter(ctx, r.World, 0, blocks, one) },
		func() error { return collectives.Gather(ctx, r.World, 0, one, blocks) },
		func() error { return collectives.Reduce(ctx, r.World, 0, sum, one, blocks[:1]) },
	}
	for _, call := range rooted {
		for range 40 { // more turns than a board has lines
			r.NoError(call())
		}
	}
	for i := range 40 {
		r.NoError(rooted[i%len(rooted)]())
		r.NoError(collectives.AllReduce(ctx, r.World, sum, one, blocks[:1]))
	}
	r.LessOrEqual(connections(r), rootNeighbors(r), "rank %d", r.Me)
	r.NoError(r.World.Barrier(ctx))
}

// connections returns the number of ranks to which a rank has connected.
func connections(r *testjob.Rank) int { return len(team.Of(r.World).PeerStats()) }

// rootNeighbors returns the number of a rank's neighbors in the tree of the barrier and rank 0;
// all other ranks for rank 0.
func rootNeighbors(r *testjob.Rank) int {
	if r.Me == 0 {
		return r.N - 1
	}
	return 2 + min(treeArity, max(0, r.N-1-r.Me*treeArity)) // above, rank 0, and below
}

// shortReductions is the body of the test of short reductions.
func shortReductions(ctx context.Context, r *testjob.Rank) {
	for i := range 40 { // more turns than a board has lines
		x := slices.Repeat([]int64{1}, 1+i)
		r.NoError(collectives.AllReduce(ctx, r.World, collectives.Sum[int64](), x, x))
		r.EqualValues(r.N, x[i])
	}
	r.LessOrEqual(connections(r), rootNeighbors(r), "rank %d", r.Me)
	r.NoError(r.World.Barrier(ctx))
}
