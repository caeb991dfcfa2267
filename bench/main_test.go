//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

// bench runs the program on n ranks of this process and returns the output of
// rank 0. The times mean nothing, so they are short.
func bench(t *testing.T, n int, args []string, opts ...runtime.Option) (string, error) {
	t.Helper()
	var out strings.Builder
	o, err := parse(append(args, "-time", "1ms"), &out)
	require.NoError(t, err)
	err = testjob.RunLocal(t.Context(), n, o.run, opts...)
	return out.String(), err
}

// ways are the three ways to reach a peer, with the benchmarks that each lacks.
var ways = map[string]struct {
	opts    []runtime.Option
	missing []string
}{
	"mapped": {[]runtime.Option{runtime.WithProvider("loop")}, []string{"rpipe_twoputs_latency"}},
	"queued": {[]runtime.Option{runtime.WithProvider("loop"), runtime.WithFMAMax(0)}, []string{"put_issue_floor", "switch_mapped"}},
	"tcp":    {[]runtime.Option{runtime.WithProvider("tcp")}, []string{"put_issue_floor", "switch_mapped"}},
}

// TestEveryBenchmarkGivesAResult runs each of them in two ways: in one on three ranks, in the other on two with
// all sizes. A benchmark that a way lacks runs in the third as well, on two ranks. Under the race detector it runs each in one way on two ranks.
// Soaking, it runs each in all ways on two and on three ranks. Each group has a job of its own.
func TestEveryBenchmarkGivesAResult(t *testing.T) {
	all := &options{names: []string{"all"}}
	groups, err := all.groups()
	require.NoError(t, err)
	for k, way := range slices.Sorted(maps.Keys(ways)) {
		for i, g := range groups {
			for _, r := range runsOf(i+k, way, g) {
				t.Run(fmt.Sprintf("%s/%d/%s", way, r.ranks, g[0].base()), func(t *testing.T) {
					requireResults(t, g, way, r.ranks, r.sizes)
				})
			}
		}
	}
}

// A benchRun is a number of ranks and the sizes that they measure.
type benchRun struct {
	ranks int
	sizes []int
}

// runsOf lists the runs of a group in one way: turn is the sum of their numbers.
func runsOf(turn int, way string, g []benchmark) []benchRun {
	runs := []benchRun{{2, []int{1, 5000, beyondCopies}}, {3, []int{5000}}, {2, []int{5000}}}
	turn %= len(runs)
	lacking := slices.ContainsFunc(g, func(b benchmark) bool { return slices.Contains(ways[way].missing, b.name) })
	switch {
	case testjob.Soak():
		return runs[:2]
	case !testwatch.Race && (turn < 2 || lacking):
		return runs[turn : turn+1]
	case testwatch.Race && turn == 2:
		return runs[2:]
	}
	return nil
}

// beyondCopies is a size that no device copies, and that is too long for batches of the group
// loggp.
const beyondCopies = 200 << 10

// requireResults runs a group in one of the ways.
func requireResults(t *testing.T, g []benchmark, way string, n int, sizes []int) {
	args := []string{"-json", "-i", "1", "-size", strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", ","), "[]")}
	for _, b := range g {
		args = append(args, b.name)
	}
	out, err := bench(t, n, args, ways[way].opts...)
	require.NoError(t, err)
	seen := map[string]int{}
	for line := range strings.Lines(out) {
		r := requireResult(t, line)
		require.Equal(t, n, r.Ranks)
		require.Equal(t, way == "mapped", r.Mapped)
		seen[r.Benchmark]++
	}
	for _, b := range g {
		requireCount(t, b, sizes, seen[b.name], slices.Contains(ways[way].missing, b.name))
	}
}

// requireResult reads a line of JSON.
func requireResult(t *testing.T, line string) (r result) {
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r))
	require.Positive(t, r.Min, line)
	require.LessOrEqual(t, r.Min, r.Median, line)
	require.LessOrEqual(t, r.Median, r.P99, line)
	return r
}

// requireCount checks the number of sizes for which a benchmark gave results.
func requireCount(t *testing.T, b benchmark, sizes []int, seen int, missing bool) {
	below := func(size int) (n int) {
		for _, s := range sizes {
			if s < size {
				n++
			}
		}
		return n
	}
	switch {
	case missing:
		require.Zero(t, seen, b.name)
	case !b.sized:
		require.Equal(t, 1, seen, b.name)
	case b.name == "switch_fma": // 5000 bytes are not copied everywhere
		require.Contains(t, []int{below(5000), below(beyondCopies)}, seen, b.name)
	case b.group == "loggp":
		require.Equal(t, below(beyondCopies), seen, b.name)
	default:
		require.Equal(t, len(sizes), seen, b.name)
	}
}

// TestOneWayOfEachSizeIsMarkedAsTheWindows: exactly one of the ways to write is marked.
func TestOneWayOfEachSizeIsMarkedAsTheWindows(t *testing.T) {
	for name, w := range ways {
		out, err := bench(t, 2, []string{"switch", "-size", "8,64K,1M"}, w.opts...)
		require.NoError(t, err)
		for _, size := range []string{"8 ", "65536 ", "1048576 "} {
			stars := 0
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, size) && strings.HasSuffix(line, "*\n") {
					stars++
				}
			}
			require.Equal(t, 1, stars, "%s, %s:\n%s", name, size, out)
		}
	}
}

func TestTablesHaveSizeAndResultFirst(t *testing.T) {
	out, err := bench(t, 2, []string{"put_latency", "-size", "8,1K"})
	require.NoError(t, err)
	var sizes []int
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var size int
		var latency float64
		_, err := fmt.Sscan(line, &size, &latency)
		require.NoError(t, err, line)
		require.Positive(t, latency)
		sizes = append(sizes, size)
	}
	require.Equal(t, []int{8, 1024}, sizes)
	require.Contains(t, out, "# Size ")
	require.Contains(t, out, "Latency (us)")
}

func TestOneRankIsRefused(t *testing.T) {
	_, err := bench(t, 1, []string{"barrier"})
	require.ErrorContains(t, err, "grun -n 2")
}

func TestListNamesEveryBenchmark(t *testing.T) {
	out, err := bench(t, 1, []string{"-list"})
	require.NoError(t, err)
	require.Equal(t, len(benchmarks()), strings.Count(out, "\n"))
}

func TestCanceledBenchmarkEnds(t *testing.T) {
	for name, w := range ways {
		t.Run(name, func(t *testing.T) {
			o, err := parse([]string{"all", "-time", "1h"}, &strings.Builder{})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, errors.New("enough"))
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- runtime.RunLocal(ctx, 2, o.run, w.opts...) }()
			select {
			case err := <-ended:
				require.ErrorContains(t, err, "enough")
			case <-testwatch.Context(t).Done():
				require.Fail(t, "still running")
			}
		})
	}
}
