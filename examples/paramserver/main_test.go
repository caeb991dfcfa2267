package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/examples/paramserver/store"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

// rank gives each rank options of its own, as processes have.
func rank(o options) runtime.Body {
	return func(ctx context.Context, job *runtime.Job) error {
		mine := o
		return mine.run(ctx, job)
	}
}

// small trains a small network. Under the race detector it takes a few steps, from which nothing
// is learned: other runs hold the accuracy.
func small(out *strings.Builder) options {
	o := options{mode: "all", steps: 60, batch: 32, hidden: [2]int{48, 32}, rate: 0.1, staleness: 1, accuracy: 0.5, seed: 1,
		rounds: 1, turns: 1, piece: 32 << 10, testedAll: 200, out: out}
	if testwatch.Race {
		o.steps, o.accuracy = 10, 0
	}
	return o
}

// TestAllModesReachTheirAccuracy also runs the table, which checks copies and sums.
func TestAllModesReachTheirAccuracy(t *testing.T) {
	for n, provider := range map[int]string{1: "tcp", 3: "loop"} {
		var out strings.Builder // rank 0 alone prints
		o := small(&out)
		o.rounds = n % 3 // in the job of 1 rank: ranks that poll would wait for each other's cores
		err := testjob.RunLocal(t.Context(), n, rank(o), runtime.WithProvider(provider))
		require.NoError(t, err, provider)
		for _, text := range []string{"mode sync: 1 servers", "mode async", "mode elastic", "two copies", "requests over TCP", "AllReduce"}[:3*(1+o.rounds)] {
			require.Contains(t, out.String(), text)
		}
	}
}

// TestNetworkLearnsWithEveryTechnique trains with each switch.
func TestNetworkLearnsWithEveryTechnique(t *testing.T) {
	for i, technique := range []store.Technique{{Read: true}, {Read: true}, {Read: true}, {Poll: true}, {Ring: true}, {Apart: true}, {Copies: 1}, {Copies: 2}, {Loose: true}, {Buffers: 2}} {
		var out strings.Builder
		o := small(&out)
		o.technique, o.rounds, o.mode = technique, 0, []string{"sync", "async", "elastic"}[i%3]
		require.NoError(t, testjob.RunLocal(t.Context(), 3, rank(o)), "%+v", technique)
		require.Contains(t, out.String(), "of 200 new images are read")
	}
}

func TestTooFewStepsAreAnError(t *testing.T) {
	var out strings.Builder
	o := small(&out)
	o.steps, o.accuracy = 1, 0.5
	require.ErrorContains(t, testjob.RunLocal(t.Context(), 2, rank(o)), "try more steps")
}

func TestTableHasTheRowsThatItsReaderNames(t *testing.T) {
	var out strings.Builder
	o := small(&out)
	o.mode, o.steps, o.accuracy, o.rows = "sync", 1, 0, "per tensor"
	require.NoError(t, testjob.RunLocal(t.Context(), 2, rank(o)))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 5, "%s", out.String())
	require.Contains(t, lines[3], "write, zero copy, asleep")
	require.Contains(t, lines[4], "registered per tensor")
}

func TestManyWorkersOfOneProcess(t *testing.T) {
	var out strings.Builder
	o := small(&out)
	o.clients = "12"
	require.NoError(t, o.scale(t.Context()))
	require.Contains(t, out.String(), "12 workers, 1 servers")
	require.Contains(t, out.String(), "8 request buffers")
	o.clients = "x"
	require.ErrorContains(t, o.scale(t.Context()), "no list of numbers")
}
