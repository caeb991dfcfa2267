//go:build linux

package faults

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/tools/hosts"
)

// A sample is a line that grun's tuner prints: the time of a call by an algorithm.
type sample struct {
	Collective string
	Bytes      int
	Algorithm  string
	Chosen     bool
	Micros     float64
}

// BenchmarkCollectivesBetweenHosts has grun's tuner measure all algorithms with a delay
// between hosts: a stream of calls, and calls with a barrier before each. It prints the
// built-in choice beside all algorithms for each call.
func BenchmarkCollectivesBetweenHosts(b *testing.B) {
	need(b)
	grun := build(b, "../cmd/grun") + "/grun"
	for _, delay := range []time.Duration{20 * time.Microsecond, time.Millisecond} {
		for _, counts := range [][]int{{1, 1, 1}, {2, 1, 3}, {1, 7}, {2, 1, 2, 1, 2}} {
			for _, how := range []string{"stream", "apart"} {
				b.Run(fmt.Sprintf("%v/%v/%s", delay, counts, how), func(b *testing.B) {
					for b.Loop() {
						report(b, measure(b, grun, delay, counts, how == "apart"))
					}
				})
			}
		}
	}
}

// A measuredCall is a call that all algorithms were measured for.
type measuredCall struct {
	collective string
	bytes      int
}

// measure returns the samples of each call.
func measure(b *testing.B, grun string, delay time.Duration, counts []int, apart bool) map[measuredCall][]sample {
	bed, lan := hosts.Star(b, 1, len(counts)+1)
	on := bed.Hosts()
	lan.Everywhere(hosts.Conditions{Delay: delay})
	place := spread(on, counts...)
	args := []string{"tune", "--as-rank", fmt.Sprintf("--apart=%t", apart), "--time", "12s", "--max", "256KiB",
		"--only", "broadcast,reduce,all-reduce,gather,all-gather,reduce-scatter,all-to-all,scan"}
	j := start(b, spec{path: grun, place: place, meet: on[len(counts)], lan: lan, family: hosts.IPv4, env: []string{"GRUN_TUNED=off"}, args: args})
	for i, err := range j.wait() {
		require.NoError(b, err, "rank %d\n%s", i, j.log())
	}
	measured := map[measuredCall][]sample{}
	for line := range strings.SplitSeq(j.ranks[0].text(), "\n") {
		var l struct{ Sample *sample }
		if json.Unmarshal([]byte(line), &l) == nil && l.Sample != nil {
			c := measuredCall{l.Sample.Collective, l.Sample.Bytes}
			measured[c] = append(measured[c], *l.Sample)
		}
	}
	require.NotEmpty(b, measured, j.log())
	return measured
}

// report prints a line for each call, and the number of calls whose built-in choice takes at
// most 1.2 of the best algorithm's time.
func report(b *testing.B, measured map[measuredCall][]sample) {
	calls := make([]measuredCall, 0, len(measured))
	for c := range measured {
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(x, y measuredCall) int {
		return cmp.Or(strings.Compare(x.collective, y.collective), cmp.Compare(x.bytes, y.bytes))
	})
	near := 0
	for _, c := range calls {
		list := measured[c]
		slices.SortFunc(list, func(x, y sample) int { return cmp.Compare(x.Micros, y.Micros) })
		for _, s := range list {
			if !s.Chosen {
				continue
			}
			ratio := s.Micros / list[0].Micros
			if ratio <= 1.2 {
				near++
			}
			fmt.Printf("%s, %s of %d bytes: chosen %s %.0f us, best %s %.0f us, ratio %.2f; all:", b.Name(), c.collective, c.bytes, s.Algorithm, s.Micros,
				list[0].Algorithm, list[0].Micros, ratio)
		}
		for _, s := range list {
			fmt.Printf(" %s %.0f", s.Algorithm, s.Micros)
		}
		fmt.Println()
	}
	fmt.Printf("%s: within 1.2 of the best in %d of %d\n", b.Name(), near, len(calls))
	b.ReportMetric(float64(near)/float64(len(calls)), "near/call")
}
