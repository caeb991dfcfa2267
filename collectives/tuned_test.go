package collectives

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/tuned"
)

// measuredAs is the setting of the teams of these tests.
var measuredAs = tuned.Setting{Path: tuned.Mapped, Hosts: "3", PerCore: 1}

// save writes a table of this machine to a file.
func save(t *testing.T, rules ...tuned.Rule) string {
	t.Helper()
	here, err := tuned.Here()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "table.json")
	table := tuned.Table{Machines: []tuned.Machine{here}, Settings: []tuned.Measured{{Setting: measuredAs, Rules: rules}}}
	require.NoError(t, table.Save(path))
	return path
}

// tuningBy returns the tuning of a team whose members all have a table.
func tuningBy(path string, warnings io.Writer) *tuning {
	own := tuned.NewOwn(path, "")
	return newTuning(own, own.Mark, warnings)
}

func measuredTeam() *team.Team {
	return &team.Team{Name: "world", Members: []int{0, 1, 2}, Mapped: true, PerCore: 1}
}

// measuredWays are choices that the built-in rules do not make.
var measuredWays = []tuned.Rule{
	{Collective: "all-reduce", From: 8, UpTo: 100, Algorithm: "ring"},
	{Collective: "all-reduce", From: 400, UpTo: 1000, Algorithm: stagedOnBoard},
	{Collective: "broadcast", UpTo: 1 << 20, Algorithm: "linear"},
	{Collective: "all-to-all", UpTo: 1 << 20, Algorithm: "pairwise"},
}

func TestSelectorPrefersMeasurementsToRules(t *testing.T) {
	var warnings bytes.Buffer
	measured := tuningBy(save(t, measuredWays...), &warnings)
	require.Empty(t, warnings.String())
	at := measuredTeam()
	g := newSelector(at, measured, newRankState(""))
	sum, vector := Sum[float64](), make([]float64, 1000)
	odd := NewOp("odd", false, func(a, _ float64) float64 { return a })
	name := func(c Call) string { return g.choose(&c, at).Name }
	require.Equal(t, "ring", name(AllReduceCall(sum, vector[:1], vector[:1])))
	require.Equal(t, stagedOnBoard, name(AllReduceCall(sum, vector[:125], vector[:125])))
	require.Equal(t, onBoard, name(AllReduceCall(sum, vector, vector)), "longer than all that was measured")
	require.Equal(t, onBoard, name(AllReduceCall(sum, vector[:0], vector[:0])), "shorter")
	require.Equal(t, onBoard, name(AllReduceCall(sum, vector[:30], vector[:30])), "between two rules")
	require.Equal(t, "linear", name(BroadcastCall(0, vector)))
	require.Equal(t, onBoard, name(AllReduceCall(odd, vector[:1], vector[:1])), "a ring cannot do that")
	require.Equal(t, onBoard, name(ScanCall(sum, vector, vector)), "no measurement chose that")
	require.Equal(t, "chain", name(BroadcastCall(0, vector, WithAlgorithm("chain"))), "the call asks for it")
	each := Blocks{Counts: []int{1, 1, 1}}
	require.Equal(t, "pairwise", name(AllToAllCall(vector[:3], vector[3:6])))
	require.Equal(t, onBoard, name(AllToAllVCall(vector[:3], each, vector[3:6], each)), "its blocks may have any length")

	for why, change := range map[string]func(*team.Team){
		"more members":                 func(o *team.Team) { o.Members = []int{0, 1, 2, 3} },
		"fewer members":                func(o *team.Team) { o.Members = []int{0, 1} },
		"members that share cores":     func(o *team.Team) { o.PerCore = 2 },
		"members bound to cores":       func(o *team.Team) { o.BoundTo = 1 },
		"members bound to unlike sets": func(o *team.Team) { o.BoundTo = -1 },
		"two hosts":                    func(o *team.Team) { o.Hosts = []int{0, 0, 2} },
	} {
		at = measuredTeam()
		change(at)
		g = newSelector(at, measured, newRankState(""))
		require.Equal(t, onBoard, name(BroadcastCall(0, vector)), why)
	}
}

// TestTablesOfSeveralHostsHoldForTheSamePlacesOnly chooses for six ranks on three hosts.
func TestTablesOfSeveralHostsHoldForTheSamePlacesOnly(t *testing.T) {
	here, err := tuned.Here()
	require.NoError(t, err)
	rules := []tuned.Rule{{Collective: "broadcast", UpTo: 1 << 20, Algorithm: "linear"}}
	setting := tuned.Setting{Path: "shm+tcp", Hosts: "2+1+3", PerCore: 1}
	measured := &tuning{path: "table", table: &tuned.Table{Machines: []tuned.Machine{here}, Settings: []tuned.Measured{{Setting: setting, Rules: rules}}}}
	for _, c := range []struct {
		hosts []int
		path  string
		want  string
	}{
		{[]int{0, 0, 2, 3, 3, 3}, "shm+tcp", "linear"},
		{[]int{0, 0, 2, 3, 3, 3}, "tcp", "two-level"},
		{[]int{0, 0, 2, 3, 3, 3}, "", "two-level"},
		{[]int{0, 0, 0, 3, 4, 4}, "shm+tcp", "two-level"},
		{[]int{0, 0, 2, 3, 3, 0}, "shm+tcp", "two-level"},
	} {
		team := &team.Team{Name: "world", Members: []int{0, 1, 2, 3, 4, 5}, Hosts: c.hosts, PerCore: 1, Path: c.path}
		g := newSelector(team, measured, newRankState(""))
		call := BroadcastCall(0, make([]float64, 10))
		require.Equal(t, c.want, g.choose(&call, team).Name, "%v over %q", c.hosts, c.path)
		_, found := measured.rank(team)
		var said bytes.Buffer
		measured.report(&said, team, found, found)
		require.Equal(t, c.want == "linear", strings.Contains(said.String(), "is used"), said.String())
		require.Equal(t, 1, strings.Count(said.String(), "\n"))
	}
	t.Setenv(tuned.EnvWays, "messages")
	team := &team.Team{Members: []int{0, 1, 2, 3, 4, 5}, Hosts: []int{0, 0, 2, 3, 3, 3}, PerCore: 1, Path: "shm+tcp"}
	g := newSelector(team, measured, newRankState(""))
	call := BroadcastCall(0, make([]float64, 10))
	require.Equal(t, "two-level", g.choose(&call, team).Name, "boards within hosts were measured")
}

func TestTableOfUnknownAlgorithmCausesOneWarning(t *testing.T) {
	for path, want := range map[string]string{
		save(t, tuned.Rule{Collective: "all-reduce", Algorithm: "magic"}):  `no all-reduce by "magic"`,
		save(t, tuned.Rule{Collective: "all-to-none", Algorithm: "board"}): "no all-to-none",
	} {
		var warnings bytes.Buffer
		own := tuned.NewOwn(path, "")
		require.Equal(t, &tuning{}, newTuning(own, "", &warnings), "a team whose members have different tables")
		got := newTuning(own, own.Mark, &warnings)
		require.Equal(t, &tuning{}, got, path)
		require.Equal(t, &tuning{}, newTuning(own, own.Mark, &warnings), "a second team of the rank")
		require.Equal(t, 1, strings.Count(warnings.String(), "\n"))
		require.Contains(t, warnings.String(), path)
		require.Contains(t, warnings.String(), want)
		list, found := got.rank(measuredTeam())
		require.Empty(t, list)
		require.False(t, found)
	}
}

func TestMembersUseNoTableThatAnotherMemberLacks(t *testing.T) {
	own := tuned.NewOwn(save(t, measuredWays...), "")
	require.NoError(t, own.Err)
	for _, common := range []string{"", "another"} {
		require.Equal(t, &tuning{}, newTuning(own, common, os.Stderr))
	}
	require.Equal(t, &tuning{}, newTuning(&tuned.Own{Err: tuned.ErrForeign}, "", os.Stderr))
}

func TestSelectorNamesTheTable(t *testing.T) {
	path := save(t, measuredWays...)
	team := measuredTeam()
	g := newSelector(team, tuningBy(path, os.Stderr), newRankState(""))
	var out bytes.Buffer
	g.out, g.said = &out, map[topic]bool{}
	c := AllReduceCall(Sum[float64](), make([]float64, 1), make([]float64, 1))
	g.choose(&c, team)
	require.Equal(t, "gopgas: team world: AllReduce of float64 by Sum, 3 ranks, 8 bytes: ring (measured to be faster here, in "+path+")\n", out.String())
}

// TestMembersWithUnlikeTablesMakeCallsThatDiffer requires an error in place of a deadlock, since
// the members would choose different algorithms.
func TestMembersWithUnlikeTablesMakeCallsThatDiffer(t *testing.T) {
	one, two := tuningBy(save(t, measuredWays...), os.Stderr), tuningBy(save(t, measuredWays[3]), os.Stderr)
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
