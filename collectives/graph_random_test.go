package collectives_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// TestNeighborCallsAgreeWithAModelOnRandomGraphs sends blocks along the edges of random graphs: one way only, several
// between two members, loops. The lengths lie around those at which the way changes.
func TestNeighborCallsAgreeWithAModelOnRandomGraphs(t *testing.T) {
	rounds := max(4, testwatch.Rounds(12)) // each number of ranks
	if testjob.Soak() {
		rounds = 200
	}
	for seed := range uint64(rounds) {
		ranks := 2 + int(seed%4)
		testjob.Config{Provider: "tcp", Ranks: ranks}.Run(t, func(ctx context.Context, r *testjob.Rank) {
			mine := edgesAtRandom(seed, ranks, r.Me)
			g, err := collectives.NewGraph(ctx, r.World, mine.in, mine.out)
			r.NoError(err)
			got := make([]byte, len(mine.comes))
			for range 2 {
				clear(got)
				r.NoError(collectives.NeighborAllToAllV(ctx, g, mine.leaves, collectives.Blocks{Counts: mine.outs}, got, collectives.Blocks{Counts: mine.ins}))
				r.True(bytes.Equal(mine.comes, got), "seed %d", seed)
			}
		})
	}
}

// A corner is a member's part of a graph.
type corner struct {
	in, out, ins, outs []int
	comes, leaves      []byte
}

// edgesAtRandom returns a member's part of a graph that is the same at all.
func edgesAtRandom(seed uint64, ranks, me int) (c corner) {
	const block = 1<<18 - 24
	lengths := []int{0, 1, 4096, block - 1, block, block + 1, 2 * block, 2*block + 1, 1<<20 - 1, 1 << 20, 1<<20 + 1}
	rnd := rand.New(rand.NewPCG(seed, 7))
	for range 1 + rnd.IntN(3*ranks) {
		from, to := rnd.IntN(ranks), rnd.IntN(ranks)
		for range 1 + rnd.IntN(2)*rnd.IntN(3) {
			mem := bytes.Repeat([]byte{byte(rnd.Uint32())}, lengths[rnd.IntN(len(lengths))])
			if to == me {
				c.in, c.ins, c.comes = append(c.in, from), append(c.ins, len(mem)), append(c.comes, mem...)
			}
			if from == me {
				c.out, c.outs, c.leaves = append(c.out, to), append(c.outs, len(mem)), append(c.leaves, mem...)
			}
		}
	}
	return c
}
