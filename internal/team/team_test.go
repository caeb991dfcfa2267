package team_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
)

// keyOf returns the key of the last of some calls.
func keyOf(calls ...team.Call) (key team.Key) {
	for i := range calls {
		key = key.Next(&calls[i])
	}
	return key
}

// Keys of equally many calls differ if one of the calls or their order differs.
func TestKeyDependsOnEarlierCalls(t *testing.T) {
	barrier, fence := team.Barrier.Call(), team.Fence.Call()
	require.Equal(t, keyOf(barrier, fence), keyOf(barrier, fence))
	require.EqualValues(t, 3, keyOf(barrier, fence, fence).Seq)
	seen := map[uint64]bool{}
	for _, calls := range [][]team.Call{{barrier, fence, fence}, {fence, barrier, fence}, {fence, fence, barrier}, {barrier, barrier, fence}} {
		key := keyOf(calls...)
		require.False(t, seen[key.Chain], "%v", calls)
		seen[key.Chain] = true
		require.NotEqual(t, keyOf(calls[:2]...).Chain>>40, key.Chain>>40, "barriers compare these bits")
	}
}

func TestCallNamesAgreedArguments(t *testing.T) {
	for want, c := range map[string]team.Call{
		"Team.Free":                         team.FreeTeam.Call(),
		"AllReduce of 4 int, Sum":           {Name: "AllReduce", Root: team.NoRoot, Count: 4, Of: "int, Sum"},
		"GatherV of int, root 2":            {Name: "GatherV", Root: 2, Count: team.Varied, Of: "int"},
		"AllGatherV of 9 int, blocks #00ab": {Name: "AllGatherV", Root: team.NoRoot, Count: 9, Of: "int", Blocks: 0xff00ab},
		"unknown collective":                team.Collective(200).Call(),
		"Broadcast of 1 int, root 0":        {Name: "Broadcast", Count: 1, Of: "int"},
	} {
		require.Equal(t, want, c.String())
	}
}
