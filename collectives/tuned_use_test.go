package collectives_test

import (
	"context"
	"path/filepath"
	goruntime "runtime"
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
	table := tuned.Table{Machines: []tuned.Machine{here}}
	cores := goruntime.NumCPU()
	for setting, algorithms := range map[tuned.Setting][3]string{
		{Path: tuned.Mapped, Hosts: "3", PerCore: (2 + cores) / cores}: {"ring", "board-staged", "rabenseifner"},
		{Path: "loop", Hosts: "4", PerCore: (3 + cores) / cores}:       {"ring", "linear", "chunked-ring"},
		{Path: "tcp", Hosts: "2", PerCore: (1 + cores) / cores}:        {"pairwise", "ring", "linear"},
	} {
		m := tuned.Measured{Setting: setting}
		for i, name := range algorithms {
			m.Rules = append(m.Rules, tuned.Rule{Collective: "all-reduce", From: []int{0, 65, 8193}[i], UpTo: []int{64, 8192, 1 << 30}[i], Algorithm: name})
		}
		table.Settings = append(table.Settings, m)
	}
	file := filepath.Join(t.TempDir(), "table.json")
	require.NoError(t, table.Save(file))
	t.Setenv(tuned.Env, file)
	for _, c := range []struct {
		testjob.Config
		want [3]string
	}{
		{testjob.Config{Provider: "loop", Ranks: 3}, [3]string{"ring", "board-staged", "rabenseifner"}},
		{testjob.Config{Provider: "loop", Queued: true, Ranks: 4}, [3]string{"ring", "linear", "chunked-ring"}},
		{testjob.Config{Provider: "tcp", Ranks: 2}, [3]string{"pairwise", "ring", "linear"}},
	} {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for _, count := range []int{1, 8, 9, 1000, 5000} {
				in, out := make([]int64, count), make([]int64, count)
				for i := range in {
					in[i] = int64(i * (r.Me + 1))
				}
				choice, err := collectives.AllReduceCall(collectives.Sum[int64](), in, out).Choice(r.World)
				r.NoError(err)
				r.Equal(c.want[min(count/9, 1)+count/5000], choice)
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
