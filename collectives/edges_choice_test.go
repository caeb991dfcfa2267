package collectives

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
)

// TestSelectorChoosesAndExplainsNeighborCalls makes calls along a graph where members
// map each other's memory, also with elements too large for a board.
func TestSelectorChoosesAndExplainsNeighborCalls(t *testing.T) {
	var out bytes.Buffer
	team := &team.Team{Name: "world", Members: []int{0, 1}, Mapped: true}
	g := newSelector(team, &tuning{}, newRankState(""))
	g.out, g.said = &out, map[topic]bool{}
	graph, x := &Graph{label: "graph 1", in: []int{1}, out: []int{1}}, make([]int16, 4)
	huge := make([][boardRoom + 1]byte, 1)
	for _, c := range []Call{NeighborAllToAllCall(graph, x, x), NeighborAllGatherCall(graph, huge, huge),
		NeighborAllToAllCall(graph, x, x, WithAlgorithm("board-staged")), NeighborAllToAllCall(graph, x, x, WithAlgorithm("hops"))} {
		require.NoError(t, g.allows(&c, team))
		g.choose(&c, team)
	}
	g.boards = false
	c := NeighborAllGatherCall(graph, x, x)
	g.choose(&c, team)
	c.algorithm = "board"
	require.ErrorIs(t, g.allows(&c, team), ErrAlgorithm)
	require.Equal(t, []string{
		"gopgas: team world: NeighborAllToAll of int16 along graph 1, 2 ranks, blocks of any length: board (all members map each other's memory)",
		"gopgas: team world: NeighborAllGather of [32769]uint8 along graph 1, 2 ranks, 32769 bytes: board (all members map each other's memory)",
		"gopgas: team world: NeighborAllToAll of int16 along graph 1, 2 ranks, blocks of any length: board-staged (the call asks for it)",
		"gopgas: team world: NeighborAllToAll of int16 along graph 1, 2 ranks, blocks of any length: hops (the call asks for it)",
		"gopgas: team world: NeighborAllGather of int16 along graph 1, 2 ranks, 8 bytes: hops " +
			"(GRUN_COLLECTIVES=messages, and the rule for its size and members)",
	}, strings.Split(strings.TrimSpace(out.String()), "\n"))
}
