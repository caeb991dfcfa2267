package collectives_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/tuned"
)

// TestCallsByATableGiveTheSameResults runs jobs by a table that differs from the rules. Its
// algorithms can do some of the calls only.
func TestCallsByATableGiveTheSameResults(t *testing.T) {
	here, err := tuned.Here()
	require.NoError(t, err)
	table := tuned.Table{Machine: here}
	for path, algorithms := range map[string][3]string{
		tuned.Mapped: {"ring", "board-staged", "rabenseifner"},
		"loop":       {"ring", "linear", "chunked-ring"},
		"tcp":        {"pairwise", "ring", "linear"},
	} {
		for i, name := range algorithms {
			table.Rules = append(table.Rules, tuned.Rule{Collective: "all-reduce", Path: path, Members: 4, UpTo: []int{64, 8192, 0}[i], Algorithm: name})
		}
	}
	file := filepath.Join(t.TempDir(), "table.json")
	require.NoError(t, table.Save(file))
	t.Setenv(tuned.Env, file)
	for _, c := range []testjob.Config{{Provider: "loop", Ranks: 3}, {Provider: "loop", Queued: true, Ranks: 4}, {Provider: "tcp", Ranks: 2}} {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for _, count := range []int{1, 8, 9, 1000, 5000} {
				in, out := make([]int64, count), make([]int64, count)
				for i := range in {
					in[i] = int64(i * (r.Me + 1))
				}
				r.NoError(collectives.AllReduce(ctx, r.World, collectives.Sum[int64](), in, out))
				for i := range out {
					r.Equal(int64(i*r.N*(r.N+1)/2), out[i])
				}
				last := collectives.NewOp("last", false, func(_, b int64) int64 { return b })
				r.NoError(collectives.AllReduce(ctx, r.World, last, in, out))
				r.Equal(int64((count-1)*r.N), out[count-1])
			}
		})
	}
}
