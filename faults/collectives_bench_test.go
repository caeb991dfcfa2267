package faults

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
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
// between hosts. It reports, for each call, the built-in choice beside the best algorithm.
func BenchmarkCollectivesBetweenHosts(b *testing.B) {
	need(b)
	grun := filepath.Join(b.TempDir(), "grun")
	out, err := exec.Command("go", "build", "-o", grun, "../cmd/grun").CombinedOutput()
	require.NoError(b, err, "%s", out)
	for _, delay := range []time.Duration{0, 20 * time.Microsecond, time.Millisecond} {
		for _, counts := range [][]int{{1, 1, 1}, {2, 1, 3}} {
			b.Run(fmt.Sprintf("%v/%v", delay, counts), func(b *testing.B) {
				for b.Loop() {
					measure(b, grun, delay, counts)
				}
			})
		}
	}
}

func measure(b *testing.B, grun string, delay time.Duration, counts []int) {
	bed, lan := hosts.Star(b, 1, 4)
	on := bed.Hosts()
	lan.Everywhere(hosts.Conditions{Delay: delay})
	place := spread(on, counts...)
	j := start(b, spec{path: grun, place: place, meet: on[3], lan: lan, family: hosts.IPv4, env: []string{"GRUN_TUNED=off"},
		args: []string{"tune", "--as-rank", "--ranks", fmt.Sprint(len(place)), "--provider", "tcp", "--time", "25s", "--max", "256KiB",
			"--only", "broadcast,all-reduce,gather,all-gather,all-to-all,scan"}})
	for i, err := range j.wait() {
		require.NoError(b, err, "rank %d\n%s", i, j.log())
	}
	type call struct {
		collective string
		bytes      int
	}
	measured := map[call][]sample{}
	for line := range strings.SplitSeq(j.ranks[0].text(), "\n") {
		var l struct{ Sample *sample }
		if json.Unmarshal([]byte(line), &l) == nil && l.Sample != nil {
			c := call{l.Sample.Collective, l.Sample.Bytes}
			measured[c] = append(measured[c], *l.Sample)
		}
	}
	calls := make([]call, 0, len(measured))
	for c := range measured {
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(x, y call) int {
		return cmp.Or(strings.Compare(x.collective, y.collective), cmp.Compare(x.bytes, y.bytes))
	})
	for _, c := range calls {
		best := slices.MinFunc(measured[c], func(x, y sample) int { return cmp.Compare(x.Micros, y.Micros) })
		for _, s := range measured[c] {
			if s.Chosen {
				fmt.Printf("%s, %s of %d bytes: chosen %s %.0f us, best %s %.0f us, ratio %.2f\n", b.Name(), c.collective, c.bytes, s.Algorithm, s.Micros,
					best.Algorithm, best.Micros, s.Micros/best.Micros)
			}
		}
	}
}
