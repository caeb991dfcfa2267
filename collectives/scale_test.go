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

// shortReductions is the body of that test.
func shortReductions(ctx context.Context, r *testjob.Rank) {
	neighbors := min(treeArity, max(0, r.N-1-r.Me*treeArity)) // below
	if r.Me > 0 {
		neighbors += 2 // above, and rank 0
	}
	if r.Me == 0 {
		neighbors = r.N - 1
	}
	connects := func() int { return len(team.Of(r.World).PeerStats()) }
	for i := range 40 { // more turns than a board has lines
		x := slices.Repeat([]int64{1}, 1+i)
		r.NoError(collectives.AllReduce(ctx, r.World, collectives.Sum[int64](), x, x))
		r.EqualValues(r.N, x[i])
	}
	r.LessOrEqual(connects(), neighbors, "rank %d", r.Me)
	r.NoError(r.World.Barrier(ctx))
}
