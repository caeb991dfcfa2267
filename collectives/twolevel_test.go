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

// inTwoLevels reports whether members can make the call of a trial in two levels. A letter
// of hosts names the host of one member.
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
// is chosen, on several pretended hosts. Each call is made on a third of them, or on all
// when soaking. The package message compares the algorithms of two levels.
func TestTwoLevelCallsAgreeWithASequentialModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(allTrials()))
	for k, c := range testjob.Apart() {
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				rnd := rand.New(rand.NewPCG(seed, uint64(k+1)))
				list := allTrials()
				for i, at := range order {
					tr := list[at]
					for range sample() {
						s := draw(rnd, r.N, 600<<10)
						requireLevels(r, tr, s, c.Hosts)
						if i%3 == k%3 || testjob.Soak() {
							try(ctx, r, tr, s)
							s.algorithm = "two-level"
							try(ctx, r, tr, s)
						}
					}
				}
			})
		})
	}
}

// distinct counts the hosts.
func distinct(hosts string) int {
	names := []byte(hosts)
	slices.Sort(names)
	return len(slices.Compact(names))
}

// requireLevels checks the choice between one level and two.
func requireLevels(r *testjob.Rank, tr trial, s *scenario, hosts string) {
	call, _ := tr.call(s, r)
	choice, err := call.Choice(r.World)
	r.NoError(err)
	able := inTwoLevels(tr, s, hosts)
	r.Equal(able, slices.Contains(call.Algorithms(r.World), "two-level"))
	pipelines := strings.Contains(tr.name, "Scan") && distinct(hosts) < 4
	if short := 8*s.count*r.N <= 8<<10; short || !able { // of long data some go on one level
		r.Equal(able && !pipelines, choice == "two-level", "%s by %s, %+v", tr.name, choice, *s)
	}
	s.release(r)
}

func TestTeamsWithoutTwoLevelsMakeCallsInOne(t *testing.T) {
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

func TestDeadRankEndsTwoLevelCallsOfAllRanks(t *testing.T) {
	for first := range 10 { // of the kinds of calls, the one that the dead rank does not make
		for i, dead := range []int{0, 2, 4} { // a leader, and two members that are none
			count := []int{1, 1 << 12, 1 << 16}[(first+i)%3]
			c := testjob.Config{Provider: "auto", Ranks: 5, Hosts: "aaabb"}
			err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
				x := make([]int64, 1)
				err := collectives.AllReduce(ctx, r.World, collectives.Sum[int64](), x, x)
				if r.Me == dead {
					r.Die()
				}
				for calls := first; err == nil; calls++ { // other members may be ahead
					err = mixed(ctx, r.World, calls, count)
				}
				r.ErrorIs(err, runtime.ErrRankDead)
			})
			require.ErrorContains(t, err, "body ended without returning")
			require.Equal(t, 1, strings.Count(err.Error(), "body ended without returning"), "%v", err)
		}
	}
}

// TestMismatchErrorNamesTwoLevelCallsThatDiffer requires that an error on a host's board names a
// member by its number in the team.
func TestMismatchErrorNamesTwoLevelCallsThatDiffer(t *testing.T) {
	sum := collectives.Sum[int64]()
	x := func(n int) []int64 { return make([]int64, n) }
	for name, of := range map[string]func(n, members int) collectives.Call{
		"AllReduce":     func(n, _ int) collectives.Call { v := x(n); return collectives.AllReduceCall(sum, v, v) },
		"Gather":        func(n, members int) collectives.Call { return collectives.GatherCall(1, x(n), x(n*members)) },
		"Scatter":       func(n, members int) collectives.Call { return collectives.ScatterCall(1, x(n*members), x(n)) },
		"ReduceScatter": func(n, members int) collectives.Call { return collectives.ReduceScatterCall(sum, x(n*members), x(n)) },
		"AllToAll": func(n, members int) collectives.Call {
			return collectives.AllToAllCall(x(n*members), x(n*members))
		},
		"Scan":   func(n, _ int) collectives.Call { return collectives.ScanCall(sum, x(n), x(n)) },
		"ExScan": func(n, _ int) collectives.Call { return collectives.ExScanCall(sum, x(n), x(n)) },
	} {
		for odd := range 5 {
			c := testjob.Config{Provider: "auto", Ranks: 5, Hosts: "abbab"}
			if strings.Contains(name, "Scan") {
				c.Hosts = "aabbb"
			}
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				count := 4
				if r.Me == odd {
					count = 5
				}
				v := x(9)
				err := collectives.AllReduce(ctx, r.World, sum, v, v)
				if err == nil { // other members may be ahead, and have found the difference
					err = makeCall(ctx, r, of(count, r.N))
				}
				if err == nil { // it waited for no member
					err = collectives.Barrier(ctx, r.World)
				}
				r.ErrorIs(err, runtime.ErrMismatch, name)
				var m *runtime.MismatchError
				r.ErrorAs(err, &m)
				r.NotEqual(m.Call, m.OtherDid)
				for _, text := range []string{m.Call, m.OtherDid} {
					r.Regexp("^"+name+" of (4|5|20|25) int64", text)
				}
				r.True(m.Rank == odd || m.Other == odd, "%v", err)
			})
		}
	}
}

func makeCall(ctx context.Context, r *testjob.Rank, c collectives.Call) error {
	plan, err := collectives.Plan(ctx, r.World, c)
	if err != nil {
		return err
	}
	return plan.Run(ctx)
}

// TestHostWithAnUnmappedMemberUsesNoBoard has one member map no memory. The other
// members on its host map each other's memory, and learn that this one does not.
func TestHostWithAnUnmappedMemberUsesNoBoard(t *testing.T) {
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

// TestElementsTooLargeForABoardGoByMessages has a board for short elements, and
// then elements that do not fit.
func TestElementsTooLargeForABoardGoByMessages(t *testing.T) {
	type large struct{ first, last [5000]int32 }
	plus := collectives.NewOp("plus", true, func(a, b large) large {
		a.first[0], a.last[4999] = a.first[0]+b.first[0], a.last[4999]+b.last[4999]
		return a
	})
	c := testjob.Config{Provider: "auto", Ranks: 5, Hosts: "aabbb"}
	c.Run(t, func(ctx context.Context, r *testjob.Rank) {
		x := []int64{1}
		r.NoError(collectives.AllReduce(ctx, r.World, collectives.Sum[int64](), x, x))
		mine := func(rank int) []large { return []large{{first: [5000]int32{int32(rank)}, last: [5000]int32{4999: 1}}} }
		two := collectives.WithAlgorithm("two-level")

		sum, all := mine(r.Me), make([]large, r.N)
		r.NoError(collectives.Scan(ctx, r.World, plus, sum, sum, two))
		r.EqualValues(r.Me*(r.Me+1)/2, sum[0].first[0])
		r.EqualValues(r.Me+1, sum[0].last[4999])

		r.NoError(collectives.Gather(ctx, r.World, 3, mine(r.Me), all, two))
		for rank := 0; r.Me == 3 && rank < r.N; rank++ {
			r.EqualValues(rank, all[rank].first[0])
		}
		out := make([]large, r.N)
		for rank := range all {
			all[rank] = mine(10*r.Me + rank)[0]
		}
		r.NoError(collectives.AllToAll(ctx, r.World, all, out, two))
		for rank := range out {
			r.EqualValues(10*rank+r.Me, out[rank].first[0])
		}
		r.NoError(collectives.ReduceScatter(ctx, r.World, plus, all, sum, two))
		r.EqualValues(100+5*r.Me, sum[0].first[0])
		r.EqualValues(r.N, sum[0].last[4999])
	})
}
