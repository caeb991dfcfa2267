package collectives

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/fabric"
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

func TestThereIsAWayForEveryCall(t *testing.T) {
	w := newWays()
	for _, c := range anyCalls() {
		for n := 1; n < 20; n++ {
			for _, count := range []int{0, 1, 1 << 10, 1 << 20} {
				c.count = min(c.count, count) // Varied stays
				way := w.best(&c, together(n), false)
				require.Empty(t, c.fits(way, together(n)), "%s of %d among %d by %s", c.kind, count, n, way.Name)
				require.NotNil(t, way.Run)
			}
		}
	}
}

func TestSizeChoosesTheAlgorithm(t *testing.T) {
	w := newWays()
	name := func(c Call, n int) string { return w.best(&c, together(n), false).Name }
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
	require.Equal(t, "board", w.best(new(BroadcastCall(0, small)), together(4), true).Name)
}

func TestTheGuideExplainsEachShapeOnce(t *testing.T) {
	var out bytes.Buffer
	team := &fabric.Team{Name: "world", Members: []int{0, 1, 2, 3}, Mapped: true}
	g := newGuide(team, &tuning{})
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
}
