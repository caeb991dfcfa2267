package collectives

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
)

func describe(t *testing.T, s *shapes, c Call) team.Call {
	t.Helper()
	d, err := s.describe(&c)
	require.NoError(t, err)
	defer s.release(d)
	return d.call
}

// TestOnlyMatchingCallsHaveEqualDescriptions compares calls as members do.
func TestOnlyMatchingCallsHaveEqualDescriptions(t *testing.T) {
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
	seen, hashes := map[string]bool{}, map[uint64]bool{}
	for i := range unlike {
		for _, s := range []*shapes{boards, messages} {
			c := describe(t, s, unlike[i])
			require.False(t, seen[c.String()], "%s", c)
			require.False(t, hashes[c.Hash], "%s", c)
			seen[c.String()], hashes[c.Hash] = true, true
		}
	}
	a, b := GatherVCall(1, x[:2], nil, Blocks{}), GatherVCall(1, x, x, blocks(2, 4))
	require.Equal(t, describe(t, boards, a), describe(t, boards, b), "each member has a block of its own length")
	require.Equal(t, team.Varied, describe(t, boards, a).Count)
}

// TestDescriptionsBeyondTheCacheAreTheSame makes calls of so many lengths that the
// last ones are described anew each time, some while others are under way.
func TestDescriptionsBeyondTheCacheAreTheSame(t *testing.T) {
	x, s := make([]byte, keptMost+100), &shapes{boards: true}
	var under *described
	for n := range x {
		want := team.Call{Name: "Broadcast", Root: 1, Count: n, Of: "uint8"}
		want.Hash = mix(mix(mix(mixText(mixText(fnvOffset, want.Of), want.Name), 1), uint64(n)), 0)
		for range 3 {
			require.Equal(t, want, describe(t, s, BroadcastCall(1, x[:n])))
		}
		if under != nil {
			require.Equal(t, n-1, under.call.Count)
			s.release(under)
		}
		c := BroadcastCall(1, x[:n])
		var err error
		under, err = s.describe(&c)
		require.NoError(t, err)
	}
	require.Equal(t, keptMost, s.kept)
}

// TestRepeatedDescriptionAllocatesNothing describes kept calls and calls beyond those.
func TestRepeatedDescriptionAllocatesNothing(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	x, s := make([]byte, keptMost+100), &shapes{boards: true}
	for n := range x {
		describe(t, s, BroadcastCall(0, x[:n]))
	}
	n := 0
	require.Less(t, testing.AllocsPerRun(2*len(x), func() {
		c := BroadcastCall(0, x[:n%len(x)])
		d, _ := s.describe(&c)
		s.release(d)
		n++
	}), 1.0, "the garbage collector may take what is spare")
}

// TestTeamsOfARankShareDescriptions of calls, so that the first call of a new team describes none anew.
func TestTeamsOfARankShareDescriptions(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		half, err := r.World.Split(ctx, 0, 0)
		r.NoError(err)
		x := []int{1}
		call := AllReduceCall(Sum[int](), x, x)
		_, first, err := admit(r.World, &call)
		r.NoError(err)
		_, again, err := admit(half, &call)
		r.NoError(err)
		r.Same(first, again)
	})
}
