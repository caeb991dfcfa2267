package collectives

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/tuned"
)

// save writes a table of this machine to a file.
func save(t *testing.T, rules ...tuned.Rule) string {
	t.Helper()
	here, err := tuned.Here()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "table.json")
	table := tuned.Table{Machine: here, Rules: rules}
	require.NoError(t, table.Save(path))
	return path
}

// measuredWays are choices that the built-in rules do not make.
var measuredWays = []tuned.Rule{
	{Collective: "all-reduce", Path: tuned.Mapped, Members: 4, UpTo: 100, Algorithm: "ring"},
	{Collective: "all-reduce", Path: tuned.Mapped, Members: 4, UpTo: 1000, Algorithm: stagedOnBoard},
	{Collective: "all-reduce", Path: tuned.Mapped, Members: 4, Algorithm: onBoard},
	{Collective: "broadcast", Path: tuned.Mapped, Members: 4, Algorithm: "linear"},
	{Collective: "all-to-all", Path: tuned.Mapped, Members: 4, Algorithm: "pairwise"},
}

func TestSelectorPrefersMeasurementsToRules(t *testing.T) {
	var warnings bytes.Buffer
	measured := newTuning(save(t, measuredWays...), &warnings)
	require.Empty(t, warnings.String())
	team := &team.Team{Name: "world", Members: []int{0, 1, 2}, Mapped: true}
	g := newSelector(team, measured)
	sum, vector := Sum[float64](), make([]float64, 1000)
	odd := NewOp("odd", false, func(a, _ float64) float64 { return a })
	name := func(c Call) string { return g.choose(&c, team).Name }
	require.Equal(t, "ring", name(AllReduceCall(sum, vector[:1], vector[:1])))
	require.Equal(t, stagedOnBoard, name(AllReduceCall(sum, vector[:100], vector[:100])))
	require.Equal(t, onBoard, name(AllReduceCall(sum, vector, vector)))
	require.Equal(t, "linear", name(BroadcastCall(0, vector)))
	require.Equal(t, onBoard, name(AllReduceCall(odd, vector[:1], vector[:1])), "a ring cannot do that")
	require.Equal(t, onBoard, name(ScanCall(sum, vector, vector)), "nobody measured that")
	require.Equal(t, "chain", name(BroadcastCall(0, vector, WithAlgorithm("chain"))), "the call asks for it")
	each := Blocks{Counts: []int{1, 1, 1}}
	require.Equal(t, "pairwise", name(AllToAllCall(vector[:3], vector[3:6])))
	require.Equal(t, onBoard, name(AllToAllVCall(vector[:3], each, vector[3:6], each)), "its blocks may have any length")

	team.Members = []int{0, 1, 2, 3, 4}
	g = newSelector(team, measured)
	require.Equal(t, onBoard, name(BroadcastCall(0, vector)), "nobody measured so many members")

	team.Members, team.Hosts = []int{0, 1, 2}, []int{0, 0, 2}
	g = newSelector(team, measured)
	require.Equal(t, onBoard, name(BroadcastCall(0, vector)), "a machine was measured, and not several")
}

func TestUnusableTableCausesOneWarning(t *testing.T) {
	damaged := filepath.Join(t.TempDir(), "damaged.json")
	require.NoError(t, os.WriteFile(damaged, []byte("{"), 0o600))
	foreign := filepath.Join(t.TempDir(), "foreign.json")
	table := tuned.Table{Machine: tuned.Machine{CPU: "another", Cores: 1000}}
	require.NoError(t, table.Save(foreign))
	for path, want := range map[string]string{
		damaged: "not a table", foreign: "another machine", damaged + ".absent": "no such file",
		save(t, tuned.Rule{Collective: "all-reduce", Path: "tcp", Members: 2, Algorithm: "magic"}):  `no all-reduce by "magic"`,
		save(t, tuned.Rule{Collective: "all-to-none", Path: "tcp", Members: 2, Algorithm: "board"}): "no all-to-none",
	} {
		var warnings bytes.Buffer
		got := newTuning(path, &warnings)
		require.Equal(t, &tuning{}, got, path)
		require.Equal(t, 1, strings.Count(warnings.String(), "\n"))
		require.Contains(t, warnings.String(), path)
		require.Contains(t, warnings.String(), want)
		require.Empty(t, got.rank(tuned.Mapped, 2))
	}
	var warnings bytes.Buffer
	require.Equal(t, &tuning{}, newTuning(tuned.Off, &warnings))
	require.Equal(t, &tuning{}, newTuning("", &warnings))
	require.Empty(t, warnings.String())
}

func TestSelectorNamesTheTable(t *testing.T) {
	path := save(t, measuredWays...)
	team := &team.Team{Name: "world", Members: []int{0, 1, 2, 3}, Mapped: true}
	g := newSelector(team, newTuning(path, os.Stderr))
	var out bytes.Buffer
	g.out, g.said = &out, map[topic]bool{}
	c := AllReduceCall(Sum[float64](), make([]float64, 1), make([]float64, 1))
	g.choose(&c, team)
	require.Equal(t, "gopgas: team world: AllReduce of float64 by Sum, 4 ranks, 8 bytes: ring (measured to be best here, in "+path+")\n", out.String())
}

// TestMembersWithUnlikeTablesMakeCallsThatDiffer requires an error in place of a deadlock, since
// the members would choose different algorithms.
func TestMembersWithUnlikeTablesMakeCallsThatDiffer(t *testing.T) {
	one, two := newTuning(save(t, measuredWays...), os.Stderr), newTuning(save(t, measuredWays[3]), os.Stderr)
	c := BroadcastCall(0, make([]int, 1))
	call := func(tuned string) team.Call {
		return describe(t, &shapes{tuned: tuned}, c)
	}
	require.NotEqual(t, call(one.mark).Hash, call(two.mark).Hash)
	require.NotEqual(t, call(one.mark).Hash, call("").Hash)
	require.Contains(t, call(one.mark).Of, "tuned by "+one.mark)
	require.Equal(t, call(one.mark), call(one.mark))
}

func TestEveryCollectiveHasAName(t *testing.T) {
	for c := message.Broadcast; c <= message.NeighborAllToAll; c++ {
		found, ok := message.Named(c.String())
		require.True(t, ok)
		require.Equal(t, c, found)
	}
	_, ok := message.Named("collective 12")
	require.False(t, ok)
}
