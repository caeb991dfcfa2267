//go:build linux

package main

import (
	"slices"
	"strings"
	"time"
)

// A work says how a group runs its benchmarks. It is a part of each cell.
type work struct {
	Provider string `json:"provider"`
	Ranks    int    `json:"ranks"`
	Bound    bool   `json:"bound"`    // to a core each; else as grun does by default
	Buffers  int    `json:"buffers"`  // used in turn; 64 keep caches cold
	Lockstep bool   `json:"lockstep"` // a barrier follows each collective call
}

// String returns the columns of a table.
func (w work) String() string {
	var words []string
	if !w.Bound {
		words = append(words, "unbound")
	}
	if w.Buffers > 1 {
		words = append(words, "cold")
	}
	if w.Lockstep {
		words = append(words, "lockstep")
	}
	return strings.Join(words, ",")
}

// A group is benchmarks that take turns as one job.
type group struct {
	name string
	work
	benchmarks []string
	sizes      []int
	quick      bool // a part of -quick
}

// cells is the number of figures of a turn. Some benchmarks have no size.
func (g *group) cells() int { return len(g.benchmarks) * len(g.sizes) }

// collectiveNames returns the benchmarks of collective calls, each of which has a peer.
func collectiveNames() []string {
	return strings.Fields("coll_barrier coll_broadcast coll_reduce coll_allreduce coll_gather coll_allgather coll_scatter " +
		"coll_reducescatter coll_alltoall coll_scan coll_exscan coll_neighbor_allgather coll_neighbor_alltoall coll_allreduce_op")
}

// usualRanks returns the numbers of ranks of collective calls, unless the user gives others.
func usualRanks() []int { return []int{2, 4, 8} }

// allGroups returns all groups, in the order of reports. Collective calls run on each number of ranks.
func allGroups(ranks []int) []group {
	warm := work{Ranks: 2, Bound: true, Buffers: 1}
	unbound, cold, lockstep := warm, warm, warm
	unbound.Bound, cold.Buffers, lockstep.Lockstep = false, 64, true
	atomics := strings.Fields("fetch_add_latency cas_latency acc_latency get_acc_latency lock_latency fence fetch_add_contended lock_contended")
	small := strings.Fields("put_latency put_issue get_latency put_bw")
	ladder := []int{8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20}
	few := strings.Fields("coll_barrier coll_broadcast coll_allreduce coll_alltoall")
	groups := []group{
		{"small", warm, small, []int{8}, true},
		{"unbound", unbound, append(slices.Clone(small), "put_notify_latency", "coll_barrier"), []int{8}, false},
		{"latency", warm, []string{"put_latency", "get_latency"}, ladder, false},
		{"bandwidth", warm, []string{"put_bw", "get_bw", "put_bibw"}, ladder, false},
		{"notify", warm, []string{"put_notify_latency"}, []int{8, 4 << 10, 64 << 10, 1 << 20}, true},
		{"pipes", warm, []string{"rpipe_latency", "rpipe_bw"}, []int{8, 4 << 10, 64 << 10, 256 << 10}, false},
		{"random", warm, []string{"put_random", "xor_random"}, []int{8}, false},
		{"atomics", warm, atomics, []int{8}, true},
		{"cold", cold, []string{"put_latency", "get_latency", "coll_broadcast", "coll_allreduce"}, []int{4 << 10, 16 << 10, 64 << 10}, false},
		{"calls", warm, few, []int{8, 64 << 10}, true},
		{"lockstep", lockstep, collectiveNames(), []int{8, 16 << 10}, false},
		{"beside", warm, strings.Fields("beside_broadcast beside_allreduce beside_allgather beside_alltoall"), []int{64 << 10, 1 << 20}, false},
	}
	teams := unbound
	teams.Ranks = 64
	groups = append(groups, group{"teams", teams, strings.Fields("team_split team_first_call team_first_call_connected team_free"), []int{8}, false})
	pairs := warm
	pairs.Ranks = 4
	groups = append(groups, group{"pairs", pairs, []string{"multi_latency", "put_mbw_mr"}, []int{8, 4 << 10, 64 << 10}, false})
	return append(groups, collectiveGroups(warm, ranks)...)
}

// collectiveGroups returns the groups of collective calls: for each number of ranks one with short data, one with
// middle and one with long data.
func collectiveGroups(warm work, ranks []int) (groups []group) {
	for _, n := range ranks {
		for _, part := range []struct {
			name  string
			sizes []int
		}{{"short", []int{8, 1 << 10}}, {"middle", []int{4 << 10, 16 << 10}}, {"long", []int{64 << 10, 1 << 20}}} {
			w := warm
			w.Ranks = n
			groups = append(groups, group{"collectives-" + part.name, w, collectiveNames(), part.sizes, false})
		}
	}
	return groups
}

// groupNames returns the names of all groups, each once, for -only and its errors.
func groupNames() (names []string) {
	for _, g := range allGroups(usualRanks()) {
		if !slices.Contains(names, g.name) {
			names = append(names, g.name)
		}
	}
	return names
}

// chosen returns the groups to run, over each provider.
func (o *options) chosen() (groups []group) {
	for _, g := range allGroups(o.ranks) {
		if len(o.groups) > 0 && !slices.Contains(o.groups, g.name) || len(o.groups) == 0 && o.quick && !g.quick {
			continue
		}
		for _, p := range o.providers {
			g.Provider = p
			groups = append(groups, g)
		}
	}
	return groups
}

// Times of -quick: its groups together stay under three minutes.
const quickTotal = 150 * time.Second

// limit returns the longest time of one of n groups.
func (o *options) limit(n int) time.Duration {
	if o.quick {
		return min(o.each, quickTotal/time.Duration(max(n, 1)))
	}
	return o.each
}

// Bounds of the time of one figure in a turn, and the guess for the start of a job.
const (
	leastFigure = 2 * time.Millisecond
	mostFigure  = 100 * time.Millisecond
	jobStart    = 500 * time.Millisecond
)

// figure returns the time of one figure, so that the rounds of all systems fit into limit.
func (g *group) figure(limit time.Duration, systems, rounds int) time.Duration {
	turn := limit/time.Duration(systems*rounds) - jobStart
	return min(max(turn/time.Duration(g.cells()), leastFigure), mostFigure)
}
