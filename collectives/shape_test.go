package collectives

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/fabric"
)

// TestCallsAreEqualOnlyIfMembersMustMakeThemTogether compares calls as members do.
func TestCallsAreEqualOnlyIfMembersMustMakeThemTogether(t *testing.T) {
	x, y := make([]int, 6), make([]float64, 6)
	sum, named := Sum[int](), NewOp("Sum of others", true, func(a, b int) int { return a + b })
	blocks := func(counts ...int) Blocks { return Blocks{Counts: counts} }
	unlike := []Call{
		AllReduceCall(sum, x, x), AllReduceCall(sum, x[:5], x[:5]), AllReduceCall(Sum[float64](), y, y), AllReduceCall(named, x, x),
		AllReduceCall(sum, x, x, Deterministic()), AllReduceCall(sum, x, x, WithAlgorithm("ring")), ScanCall(sum, x, x),
		BroadcastCall(0, x), BroadcastCall(1, x), GatherCall(0, x, nil), GatherVCall(0, x, nil, Blocks{}),
		AllGatherVCall(x[:1], x, blocks(1, 2)), AllGatherVCall(x[:2], x, blocks(2, 1)), AllGatherCall(x[:3], x),
		ReduceScatterVCall(sum, x, blocks(1, 2), x), ReduceScatterVCall(sum, x, blocks(2, 1), x),
	}
	boards, messages := &shapes{boards: true}, &shapes{}
	seen, marks := map[string]bool{}, map[uint64]bool{}
	for i := range unlike {
		for _, s := range []*shapes{boards, messages} {
			c := s.of(&unlike[i]).call(&unlike[i])
			require.False(t, seen[c.String()], "%s", c)
			require.False(t, marks[c.Mark], "%s", c)
			seen[c.String()], marks[c.Mark] = true, true
		}
	}
	a, b := GatherVCall(1, x[:2], nil, Blocks{}), GatherVCall(1, x, x, blocks(2, 4))
	require.Equal(t, boards.of(&a).call(&a), boards.of(&b).call(&b), "each member has a block of its own length")
	require.Equal(t, fabric.Varied, boards.of(&a).call(&a).Count)
}
