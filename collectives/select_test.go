package collectives

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/team"
)

func TestEveryRuleNamesAnAlgorithm(t *testing.T) {
	for _, r := range rules {
		_, ok := message.Find(r.collective, r.name)
		require.True(t, ok, "%s by %s", r.collective, r.name)
	}
}

// anyCalls are calls of every collective that ask the most of an algorithm.
func anyCalls() (list []Call) {
	op := NewOp("any", false, func(a, _ int) int { return a })
	odd := Blocks{Counts: []int{1, 0, 2}, Offsets: []int{3, 0, 0}}
	x := make([]int, 12)
	return []Call{
		BroadcastCall(0, x), ReduceCall(0, op, x, x, Deterministic()), AllReduceCall(op, x, x, Deterministic()),
		GatherCall(0, x, nil), GatherVCall(0, x, x, odd), ScatterCall(0, x, x), ScatterVCall(0, x, odd, x),
		AllGatherCall(x[:4], x), AllGatherVCall(x, x, odd), AllToAllCall(x, x), AllToAllVCall(x, odd, x, odd),
		ReduceScatterCall(op, x, x[:4], Deterministic()), ReduceScatterVCall(op, x, odd, x, Deterministic()),
		ScanCall(op, x, x, Deterministic()), ExScanCall(op, x, x, Deterministic()),
	}
}

// crowd are n members on one host that share cores.
func crowd(n int) topology {
	of := oneHost(n)
	of.crowded = true
	return of
}

func TestRulesChooseByWhetherMembersShareCores(t *testing.T) {
	w := newWays()
	name := func(c Call, of topology) string { return w.best(&c, of, false).Name }
	small, large, sum := make([]float64, 8), make([]float64, 1<<18), Sum[float64]()
	ordered := sum // as if it did not commute
	ordered.commutes = false
	for _, c := range []struct {
		call           Call
		apart, crowded string
	}{
		{BroadcastCall(0, large), "chain", "binomial"},
		{AllReduceCall(sum, small, small), "recursive-doubling", "linear"},
		{AllReduceCall(sum, large[:10000], large[:10000]), "rabenseifner", "linear"},
		{AllToAllCall(small, small), "bruck", "gather-scatter"},
		{ScanCall(sum, small, small), "recursive-doubling", "linear"},
		{AllReduceCall(sum, small, small, Deterministic()), "linear", "linear"},
	} {
		require.Equal(t, c.apart, name(c.call, oneHost(8)))
		require.Equal(t, c.crowded, name(c.call, crowd(8)))
		require.NotEqual(t, "two-level", name(c.call, crowd(8)))
	}
	for _, c := range []struct {
		call Call
		n    int
		want string
	}{
		{AllGatherCall(large[:1<<15], large), 8, "recursive-doubling"},
		{AllGatherCall(large[:1<<15], large[:6<<15]), 6, "ring"},
		{ReduceCall(0, sum, large, large), 8, "chain"},
		{ReduceCall(0, sum, large, large), 9, "binomial"},
		{ReduceCall(0, ordered, large, large), 8, "binomial"},
		{ReduceScatterCall(sum, large[:1<<15], large[:1<<13]), 4, "recursive-halving"},
		{ReduceScatterCall(ordered, large[:1<<15], large[:1<<13]), 4, "reduce-scatter"},
	} {
		require.Equal(t, c.want, name(c.call, crowd(c.n)))
	}
	require.True(t, topologyOf(&team.Team{Members: []int{0, 1}, Hosts: []int{0, 0}, PerCore: 2}).crowded)
}

func TestRulesChooseAFittingAlgorithmForEachCall(t *testing.T) {
	w := newWays()
	for _, c := range anyCalls() {
		for n := 1; n < 20; n++ {
			for _, count := range []int{0, 1, 1 << 10, 1 << 20} {
				c.count = min(c.count, count) // Varied stays
				for _, of := range []topology{oneHost(n), crowd(n)} {
					way := w.best(&c, of, false)
					require.Empty(t, c.fits(way, of), "%s of %d among %v by %s", c.of.name, count, of, way.Name)
					require.NotNil(t, way.Run)
				}
			}
		}
	}
}

func TestRulesChooseBySize(t *testing.T) {
	w := newWays()
	name := func(c Call, n int) string { return w.best(&c, oneHost(n), false).Name }
	small, large := make([]float64, 1), make([]float64, 1<<20)
	sum := Sum[float64]()
	require.Equal(t, "recursive-doubling", name(AllReduceCall(sum, small, small), 4))
	require.Equal(t, "ring", name(AllReduceCall(sum, large, large), 4))
	require.Equal(t, "recursive-doubling", name(AllReduceCall(sum, large[:30000], large[:30000]), 2))
	require.Equal(t, "rabenseifner", name(AllReduceCall(sum, large[:30000], large[:30000]), 4))
	require.Equal(t, "binomial", name(BroadcastCall(0, large), 2))
	require.Equal(t, "chain", name(BroadcastCall(0, large), 8))
	require.Equal(t, "scatter-all-gather", name(BroadcastCall(0, large), 9))
	require.Equal(t, "linear", name(ScanCall(sum, large, large), 8))
	require.Equal(t, "binomial", name(ReduceCall(0, sum, large, large), 2))
	require.Equal(t, "rabenseifner", name(ReduceCall(0, sum, large, large), 3))
	odd := NewOp("odd", false, func(a, _ float64) float64 { return a })
	require.Equal(t, "rabenseifner", name(AllReduceCall(odd, large, large), 4), "a ring needs an operator that commutes")
	require.Equal(t, "pairwise", name(AllReduceCall(sum, large, large, Deterministic()), 4))
	require.Equal(t, "board", w.best(new(BroadcastCall(0, small)), oneHost(4), true).Name)
}

func TestRulesChooseByHosts(t *testing.T) {
	w := newWays()
	large := make([]float64, 1<<18)
	sum, odd := Sum[float64](), NewOp("odd", false, func(a, _ float64) float64 { return a })
	blocks, gap := Blocks{Counts: []int{1, 2, 0, 1}}, Blocks{Counts: []int{1, 2, 0, 1}, Offsets: []int{0, 1, 3, 4}}
	calls := []Call{
		BroadcastCall(0, large), BroadcastCall(0, large[:1]), ReduceCall(0, sum, large, large), AllReduceCall(sum, large, large),
		AllReduceCall(odd, large, large), ReduceCall(0, odd, large, large),
		AllGatherCall(large[:1], large[:4]), AllGatherVCall(large, large, blocks), AllGatherVCall(large, large, gap),
		AllReduceCall(sum, large, large, Deterministic()), ScanCall(sum, large[:1], large[:1]), ExScanCall(odd, large[:1], large[:1]),
		GatherCall(0, large[:1], large[:4]), ScatterCall(0, large[:4], large[:1]), AllToAllCall(large[:4], make([]float64, 4)),
		ReduceScatterCall(sum, large, large[:len(large)/4]), ReduceScatterCall(odd, large[:4], large[:1]),
		ReduceScatterVCall(sum, large, blocks, large), ReduceScatterVCall(sum, large, gap, large),
		GatherVCall(0, large, large, blocks), ScatterVCall(0, large, blocks, large), AllToAllVCall(large, blocks, large, blocks),
		ScanCall(sum, large, large), AllToAllCall(large, make([]float64, len(large))),
		GatherCall(0, large, make([]float64, 4*len(large))), ScatterCall(0, make([]float64, 4*len(large)), large),
	}
	const none, ordered, mixed = "--------------------------", "********----******--------", "****--------****-*--------"
	for hosts, want := range map[string]string{"aaaa": none, "abcd": none, "aabb": ordered, "abbb": ordered, "abab": mixed} {
		require.Len(t, want, len(calls))
		team := &team.Team{Members: []int{4, 7, 2, 9}}
		for i := range hosts {
			team.Hosts = append(team.Hosts, int(hosts[i]))
		}
		for i, c := range calls {
			way := w.best(&c, topologyOf(team), false)
			require.Empty(t, c.fits(way, topologyOf(team)))
			require.Equal(t, want[i] == '*', way.Name == "two-level", "%s, call %d: %s", hosts, i, way.Name)
		}
	}
	require.Equal(t, oneHost(2), topologyOf(&team.Team{Members: []int{0, 1}}))
}

func TestRulesBetweenHostsPreferFewRounds(t *testing.T) {
	w := newWays()
	short, long, huge, sum := make([]float64, 64), make([]float64, 1<<14), make([]float64, 1<<18), Sum[float64]()
	for _, c := range []struct {
		call Call
		n    int
		want string
	}{
		{AllGatherCall(short[:1], short[:3]), 3, "direct"},
		{AllGatherCall(long[:10], long[:90]), 9, "recursive-doubling"},
		{AllToAllCall(short, short), 8, "direct"},
		{AllReduceCall(sum, short, short), 2, "recursive-doubling"},
		{AllReduceCall(sum, long, long), 3, "linear"},
		{AllReduceCall(sum, short, short), 4, "recursive-doubling"},
		{AllReduceCall(sum, short, short), 5, "linear"},
		{AllReduceCall(sum, short, short), 8, "recursive-doubling"},
		{AllReduceCall(sum, huge, huge), 3, "ring"},
		{ReduceCall(0, sum, short, short), 3, "binomial"},
		{ReduceCall(0, sum, short, short), 5, "linear"},
		{ReduceCall(0, sum, long, long), 3, "binomial"},
		{BroadcastCall(0, short), 3, "binomial"},
		{BroadcastCall(0, short), 5, "linear"},
		{BroadcastCall(0, long), 5, "chain"},
		{GatherCall(0, short[:1], short[:8]), 8, "linear"},
	} {
		require.Equal(t, c.want, w.best(&c.call, leadersOf(c.n), false).Name, "%s of %d bytes among %d", c.call.of.name, c.call.bytes(c.n), c.n)
	}
	for hosts, want := range map[string]string{"aab": "linear", "aabcc": "linear", "aabcd": "two-level", "abca": "recursive-doubling"} {
		at := &team.Team{Members: make([]int, len(hosts))}
		for _, h := range hosts {
			at.Hosts = append(at.Hosts, int(h))
		}
		scan := ScanCall(sum, short, short)
		require.Equal(t, want, w.best(&scan, topologyOf(at), false).Name, hosts)
	}
}

func TestErrorForUnfitAlgorithmNamesTheReason(t *testing.T) {
	x := make([]int64, 4)
	sum, odd := Sum[int64](), NewOp("odd", false, func(a, _ int64) int64 { return a })
	mixed := topology{n: 4, hosts: 2, shared: true}
	for why, asked := range map[string]struct {
		c  Call
		of topology
	}{
		"several hosts":                    {AllReduceCall(sum, x, x, WithAlgorithm("two-level")), oneHost(4)},
		"no two members share a host":      {AllReduceCall(sum, x, x, WithAlgorithm("two-level")), topology{n: 4, hosts: 4, runs: true}},
		"hosts whose members follow":       {AllGatherCall(x[:1], x, WithAlgorithm("two-level")), mixed},
		"its operator must commute, or":    {ReduceCall(0, odd, x, x, WithAlgorithm("two-level")), mixed},
		"it does not combine from left to": {ReduceCall(0, sum, x, x, Deterministic(), WithAlgorithm("two-level")), mixed},
	} {
		w := newWays()
		_, err := w.named(&asked.c, asked.of, false)
		require.ErrorIs(t, err, ErrAlgorithm)
		require.ErrorContains(t, err, why)
	}
}

func TestSelectorExplainsEachShapeOnce(t *testing.T) {
	var out bytes.Buffer
	team := &team.Team{Name: "world", Members: []int{0, 1, 2, 3}, Mapped: true}
	g := newSelector(team, &tuning{}, newRankState(""))
	g.out, g.said = &out, map[topic]bool{}
	small, large := make([]float64, 1), make([]float64, 1<<20)
	for range 3 {
		for _, c := range []Call{AllReduceCall(Sum[float64](), small, small), BroadcastCall(1, large),
			BroadcastCall(1, large, WithAlgorithm("chain")), AllReduceCall(Sum[float64](), small, small, Deterministic())} {
			g.choose(&c, team)
		}
	}
	g.boards = false
	c := AllReduceCall(Max[float64](), small, small)
	g.choose(&c, team)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Equal(t, []string{
		"gopgas: team world: AllReduce of float64 by Sum, 4 ranks, 8 bytes: board (all members map each other's memory)",
		"gopgas: team world: Broadcast of float64, 4 ranks, 8388608 bytes: board (all members map each other's memory)",
		"gopgas: team world: Broadcast of float64, 4 ranks, 8388608 bytes: chain (the call asks for it)",
		"gopgas: team world: AllReduce of float64 by Sum, deterministic, 4 ranks, 8 bytes: board (all members map each other's memory)",
		"gopgas: team world: AllReduce of float64 by Max, 4 ranks, 8 bytes: recursive-doubling " +
			"(GRUN_COLLECTIVES=messages, and the rule for its size and members)",
	}, lines)

	out.Reset()
	team.Hosts, team.Mapped = []int{0, 0, 2, 2}, false
	g = newSelector(team, &tuning{}, newRankState(""))
	g.out, g.said = &out, map[topic]bool{}
	c = BroadcastCall(1, large)
	g.choose(&c, team)
	g.explainHost(team, 2, true)
	g.explainHost(team, 2, false)
	require.Equal(t, "gopgas: team world: Broadcast of float64, 4 ranks on 2 hosts, 8388608 bytes: two-level (the rule for its size, members and where they are)\n"+
		"gopgas: team world, 4 ranks on 2 hosts: the 2 on the host of rank 0 use a board\n"+
		"gopgas: team world, 4 ranks on 2 hosts: the 2 on the host of rank 0 use messages, since not all of them map the others' memory\n", out.String())
}
