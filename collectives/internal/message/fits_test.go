package message_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

func TestAlgorithmsThatDoNotFitSayWhy(t *testing.T) {
	t.Parallel()
	split := message.NewHosts([]int{1, 2, 1})
	for _, tc := range []struct {
		collective message.Collective
		name       string
		n          int
		args       message.Args
		why        string
	}{
		{message.AllReduce, "ring", 3, message.Args{}, "needs an operator that commutes"},
		{message.AllReduce, "ring", 3, message.Args{Commutative: true, Ordered: true}, "does not combine from left to right"},
		{message.AllReduce, "recursive-doubling", 3, message.Args{Ordered: true}, "does not combine from left to right"},
		{message.AllReduce, "two-level", 3, message.Args{Commutative: true}, "needs to know who shares a host"},
		{message.AllReduce, "two-level", 3, message.Args{Hosts: split}, "needs hosts whose members follow one another"},
		{message.AllGather, "two-level", 3, message.Args{Hosts: split}, "needs hosts whose members follow one another"},
		{message.AllGather, "neighbour-exchange", 5, message.Args{}, "needs an even number of members, not 5"},
		{message.AllGather, "recursive-doubling", 2, message.Args{RecvCounts: []int{4, 4}, RecvOffsets: []int{4, 0}}, "needs blocks that follow one another"},
		{message.Scatter, "binomial", 2, message.Args{SendCounts: []int{4, 4}, SendOffsets: []int{0, 8}}, "needs blocks that follow one another"},
		{message.AllToAll, "bruck", 2, message.Args{SendCounts: []int{4, 4}}, "needs blocks of one length"},
	} {
		al, ok := message.Find(tc.collective, tc.name)
		require.True(t, ok, tc.name)
		err := al.Fits(tc.n, &tc.args)
		require.ErrorIs(t, err, message.ErrUnfit)
		require.ErrorContains(t, err, tc.why)
		require.ErrorContains(t, err, tc.name)
	}
}

func TestEveryCallHasAnAlgorithm(t *testing.T) {
	t.Parallel()
	calls := []message.Args{
		{Commutative: true},
		{},
		{Commutative: true, Ordered: true},
		{SendCounts: []int{1, 2, 3}, SendOffsets: []int{9, 5, 0}, RecvCounts: []int{1, 2, 3}, RecvOffsets: []int{9, 5, 0}, Ordered: true},
	}
	for c := message.Broadcast; c <= message.NeighbourAllToAll; c++ {
		for _, a := range calls {
			require.True(t, slices.ContainsFunc(message.Algorithms(c), func(al message.Algorithm) bool {
				return al.Fits(3, &a) == nil && al.Needs&message.EveryCount == 0
			}), "%s %+v", c, a)
		}
	}
}

func TestAlgorithmsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for c := message.Broadcast; c <= message.NeighbourAllToAll; c++ {
		seen := map[string]bool{}
		for _, al := range message.Algorithms(c) {
			require.False(t, seen[al.Name], "%s %s", c, al.Name)
			seen[al.Name] = true
			require.Equal(t, c, al.Collective)
			require.NotNil(t, al.Run)
		}
	}
	_, ok := message.Find(message.Scan, "no such")
	require.False(t, ok)
	require.Equal(t, "collective 200", message.Collective(200).String())
}
