package collectives_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
)

// inTwoLevels tells whether members on hosts, a letter for each, can make the call of
// a trial so.
func inTwoLevels(tr trial, s *scenario, hosts string) bool {
	runs, count := true, 0
	for i := range hosts {
		seen := strings.Contains(hosts[:i], hosts[i:i+1])
		runs = runs && (!seen || hosts[i] == hosts[i-1])
		if !seen {
			count++
		}
	}
	if count == 1 || count == len(hosts) {
		return false
	}
	name, _, commutes := strings.Cut(tr.name, " of ")
	switch name {
	case "Reduce", "AllReduce", "ReduceScatter":
		return runs || commutes
	case "ReduceScatterV":
		return (runs || commutes) && s.packed
	case "AllGather", "Scan", "ExScan":
		return runs
	case "AllGatherV":
		return runs && s.packed
	case "GatherV", "ScatterV", "AllToAllV": // not all know all counts
		return false
	}
	return true
}

// TestTwoLevelCallsAgreeWithASequentialModel makes every call, by two levels and as it
// is chosen, on several pretended hosts.
func TestTwoLevelCallsAgreeWithASequentialModel(t *testing.T) {
	testjob.EachApart(t, func(t *testing.T, c testjob.Config) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			for _, tr := range allTrials() {
				for range sample() {
					s := draw(rnd, r.N, 600<<10)
					call, _ := tr.call(s, r)
					choice, err := call.Choice(r.World)
					r.NoError(err)
					able := inTwoLevels(tr, s, c.Hosts)
					r.Equal(able, slices.Contains(call.Algorithms(r.World), "two-level"))
					if short := 8*s.count*r.N <= 16<<10; short || !able { // of long data some go on one level
						r.Equal(able, choice == "two-level", "%s by %s, %+v", tr.name, choice, *s)
					}
					try(ctx, r, tr, s)
					s.algorithm, s.free = "two-level", nil
					try(ctx, r, tr, s)
				}
			}
		})
	})
}

func TestTeamsOfOneHostOrOneMemberOfEachHaveOneLevel(t *testing.T) {
	c := testjob.Config{Provider: "auto", Ranks: 5, Hosts: "aabbb"}
	c.Run(t, func(ctx context.Context, r *testjob.Rank) {
		x := make([]int64, 100)
		call := collectives.AllReduceCall(collectives.Sum[int64](), x, x)
		for _, oneHost := range []bool{true, false} {
			color := []int{0, 1, 0, 1, -1}[r.Me] // one member of each host
			if oneHost {
				color = int(c.Hosts[r.Me])
			}
			team, err := r.World.Split(ctx, color, 0)
			r.NoError(err)
			if team == nil {
				return
			}
			r.NotContains(call.Algorithms(team), "two-level")
			r.Equal(oneHost, slices.Contains(call.Algorithms(team), "board"))
			x[0] = 1
			r.NoError(collectives.AllReduce(ctx, team, collectives.Sum[int64](), x, x))
			r.EqualValues(team.Size(), x[0])
			err = collectives.AllReduce(ctx, team, collectives.Sum[int64](), x, x, collectives.WithAlgorithm("two-level"))
			r.ErrorIs(err, collectives.ErrAlgorithm)
		}
	})
}

func TestADeadRankEndsTwoLevelCallsOfAllOthers(t *testing.T) {
	for _, dead := range []int{0, 2, 4} { // a leader, and two who are led
		for _, count := range []int{1, 1 << 16} {
			c := testjob.Config{Provider: "auto", Ranks: 5, Hosts: "aaabb"}
			err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
				x := make([]float64, count)
				var err error
				for calls := 0; err == nil; calls++ {
					if r.Me == dead && calls == 3 {
						r.Die()
					}
					err = collectives.AllReduce(ctx, r.World, collectives.Max[float64](), x, x)
				}
				r.ErrorIs(err, runtime.ErrRankDead)
			})
			require.ErrorContains(t, err, "body ended without returning")
			require.Equal(t, 1, strings.Count(err.Error(), "body ended without returning"), "%v", err)
		}
	}
}

// TestTwoLevelCallsThatDifferAreNamed: who meets on a host's board is named by its
// number in the team.
func TestTwoLevelCallsThatDifferAreNamed(t *testing.T) {
	for odd := range 5 {
		c := testjob.Config{Provider: "auto", Ranks: 5, Hosts: "abbab"}
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			sum, x := collectives.Sum[int64](), make([]int64, 9)
			count := 4
			if r.Me == odd {
				count = 5
			}
			err := collectives.AllReduce(ctx, r.World, sum, x, x)
			if err == nil { // the others may be ahead, and have found the difference
				err = collectives.AllReduce(ctx, r.World, sum, x[:count], x[:count])
			}
			r.ErrorIs(err, runtime.ErrMismatch)
			var m *runtime.MismatchError
			r.ErrorAs(err, &m)
			r.ElementsMatch([]string{"AllReduce of 4 int64, Sum", "AllReduce of 5 int64, Sum"}, []string{m.Call, m.OtherDid})
			r.True(m.Rank == odd || m.Other == odd, "%v", err)
		})
	}
}

// TestAHostWithAMemberThatMapsNothingHasNoBoard: the others there map each other's
// memory, and learn that it does not.
func TestAHostWithAMemberThatMapsNothingHasNoBoard(t *testing.T) {
	for range 5 {
		var first atomic.Bool
		wrap := func(p driver.Provider) driver.Provider {
			if p.Name() == "loop" && !first.Swap(true) { // some rank's
				return faulty.New(p, faulty.Plan{HideMapper: true})
			}
			return p
		}
		c := testjob.Config{Provider: "auto", Ranks: 7, Hosts: "aaabbbb"}
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for _, count := range []int{1, 1000, 20000} {
				x := make([]int64, count)
				x[count-1] = int64(r.Me)
				r.NoError(collectives.AllReduce(ctx, r.World, collectives.Sum[int64](), x, x))
				r.EqualValues(21, x[count-1])
			}
		}, runtime.WithWrap(wrap))
	}
}
