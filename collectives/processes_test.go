package collectives_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

// bodies holds the functions that processes of tests run.
var bodies = map[string]testjob.Body{"sums": sums, "model": model, "killed": killed, "panics": panics, "crowd": crowd, "cut": cut, "exchanges": exchanges, "torn": torn, "on hosts": onHosts, "short reductions": shortReductions, "rooted calls": rootedCalls, "short messages": shortMessages, "scans": scans}

// onHosts checks all calls. Package faults runs it on real hosts.
func onHosts(ctx context.Context, r *testjob.Rank) {
	sums(ctx, r)
	model(ctx, r)
}

// sums makes calls that use boards, buffers in place, and messages.
func sums(ctx context.Context, r *testjob.Rank) {
	for _, n := range []int{1, 1000, 300000} {
		in, err := collectives.Alloc[int64](r.World, n)
		r.NoError(err)
		out, err := collectives.Alloc[int64](r.World, n)
		r.NoError(err)
		for i := range in.Mem() {
			in.Mem()[i] = int64(i + r.Me)
		}
		slice := make([]int64, n)
		for range testwatch.Rounds(10) {
			r.NoError(collectives.AllReduce(ctx, r.World, collectives.Sum[int64](), in.Mem(), out.Mem()))
			r.NoError(collectives.AllReduce(ctx, r.World, collectives.Sum[int64](), in.Mem(), slice))
			r.NoError(collectives.Broadcast(ctx, r.World, r.N-1, slice))
			for i := range slice {
				if want := int64(r.N*i + r.N*(r.N-1)/2); slice[i] != want || out.Mem()[i] != want {
					r.Equal(want, slice[i], "slice, element %d of %d", i, n)
					r.Equal(want, out.Mem()[i], "buffer, element %d of %d", i, n)
				}
			}
		}
	}
}

// killed has a rank die by SIGKILL among calls of the others.
func killed(ctx context.Context, r *testjob.Rank) {
	x := make([]float64, 3000)
	var err error
	for calls := 0; err == nil; calls++ {
		if r.Me == 1 && calls == 100 {
			r.Die()
		}
		err = collectives.AllReduce(ctx, r.World, collectives.Max[float64](), x, x)
	}
	r.ErrorIs(err, runtime.ErrRankDead)
	var dead *runtime.RankError
	r.ErrorAs(err, &dead)
	r.Equal(1, dead.Rank)
}

// apart are processes on several pretended hosts, which share memory within them.
var apart = []testjob.Job{{Provider: "auto", Ranks: 4, Hosts: "aabb"}, {Provider: "auto", Ranks: 4, Hosts: "abcb"}}

func TestCallsAgreeAmongProcesses(t *testing.T) {
	for _, job := range append(testjob.Processes(3), apart...) {
		t.Run(job.String(), func(t *testing.T) { job.Run(t, "sums") })
	}
}

// model makes all calls, as they are chosen and in two levels.
func model(ctx context.Context, r *testjob.Rank) {
	rnd := rand.New(rand.NewPCG(uint64(r.N), 7)) // the same at all ranks
	for _, tr := range allTrials() {
		for _, name := range []string{"", "two-level"} {
			for range testwatch.Rounds(4) {
				s := draw(rnd, r.N, 256<<10)
				s.algorithm = name
				try(ctx, r, tr, s)
			}
		}
	}
}

func TestProcessesOnSeveralHostsAgreeWithASequentialModel(t *testing.T) {
	for _, job := range apart {
		t.Run(job.String(), func(t *testing.T) { job.Run(t, "model") })
	}
}

func TestKilledProcessEndsCallsOfAllRanks(t *testing.T) {
	for _, job := range append(testjob.Processes(4), apart...) {
		t.Run(job.String(), func(t *testing.T) {
			out := job.Try(t, "killed")
			require.Equal(t, 137, out.ExitCode, "%s\n%s", out.Summary(), out.Output)
			require.NotContains(t, out.Output, "Error Trace", "a survivor learned something else")
		})
	}
}

func TestProcessesOnSeveralHostsExplainTheirChoices(t *testing.T) {
	job := testjob.Job{Provider: "auto", Ranks: 3, Hosts: "aab", Env: []string{"GRUN_EXPLAIN=collectives"}}
	out := job.Try(t, "sums")
	require.Zero(t, out.ExitCode, out.Output)
	const hosts = `3 ranks on 2 hosts( that share cores)?` // as two ranks of a host with one core do
	require.Regexp(t, "AllReduce of int64 by Sum, "+hosts+`, 8 bytes: two-level \(the rule for its size, members and where they are\)`, out.Output)
	require.Regexp(t, "team world, "+hosts+": the 2 on the host of rank 0 use a board\n", out.Output)
}
