package message_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// reduces reports whether the collective combines.
func reduces(c message.Collective) bool {
	return slices.Contains([]message.Collective{message.Reduce, message.AllReduce, message.ReduceScatter, message.Scan, message.ExScan}, c)
}

// unmet returns the needs of the algorithm that a call of n members does not
// meet.
func unmet(al *message.Algorithm, n int, a *message.Args) (needs message.Needs) {
	counts, offsets := a.RecvCounts, a.RecvOffsets
	if al.Collective == message.Scatter {
		counts, offsets = a.SendCounts, a.SendOffsets
	}
	for i := range offsets {
		if i > 0 && offsets[i] != offsets[i-1]+counts[i-1] {
			needs |= message.PackedBlocks
		}
	}
	if reduces(al.Collective) && !a.Commutative {
		needs |= message.Commuting
	}
	if n%2 != 0 && n > 1 {
		needs |= message.EvenSize
	}
	if a.SendCounts != nil || a.RecvCounts != nil {
		needs |= message.EqualBlocks
	}
	switch {
	case a.Hosts == nil:
		needs |= message.HostMap
	case !a.Hosts.Runs():
		needs |= message.HostRuns
		if needs&message.Commuting != 0 {
			needs |= message.OrderedHosts
		}
	}
	return needs & al.Needs
}

func TestTableHasAnAlgorithmForEachCall(t *testing.T) {
	t.Parallel()
	calls := []message.Args{
		{Commutative: true},
		{},
		{Commutative: true, Ordered: true},
		{SendCounts: []int{1, 2, 3}, SendOffsets: []int{9, 5, 0}, RecvCounts: []int{1, 2, 3}, RecvOffsets: []int{9, 5, 0}, Ordered: true},
	}
	for c := message.Broadcast; c <= message.NeighborAllToAll; c++ {
		for _, a := range calls {
			require.True(t, slices.ContainsFunc(message.Algorithms(c), func(al message.Algorithm) bool {
				return unmet(&al, 3, &a) == 0 && al.Needs&message.EveryCount == 0 && (al.Exact || !a.Ordered || !reduces(c))
			}), "%s %+v", c, a)
		}
	}
}

func TestAlgorithmsOfACollectiveHaveDistinctNames(t *testing.T) {
	t.Parallel()
	for c := message.Broadcast; c <= message.NeighborAllToAll; c++ {
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
