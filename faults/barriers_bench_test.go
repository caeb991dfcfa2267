//go:build linux

package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/tools/hosts"
)

// BenchmarkBarriersBetweenHosts prints the time of a barrier with a delay between hosts.
func BenchmarkBarriersBetweenHosts(b *testing.B) {
	need(b)
	bench := build(b, "../bench") + "/bench"
	for _, delay := range []time.Duration{20 * time.Microsecond, time.Millisecond} {
		for _, counts := range [][]int{{1, 1, 1}, {2, 1, 3}, {1, 1, 1, 1, 1, 1}} {
			b.Run(fmt.Sprintf("%v/%v", delay, counts), func(b *testing.B) {
				for b.Loop() {
					bed, lan := hosts.Star(b, 1, len(counts)+1)
					on := bed.Hosts()
					lan.Everywhere(hosts.Conditions{Delay: delay})
					j := start(b, spec{path: bench, place: spread(on, counts...), meet: on[len(counts)], lan: lan, family: hosts.IPv4,
						args: []string{"barrier", "-time", "3s"}})
					for i, err := range j.wait() {
						require.NoError(b, err, "rank %d\n%s", i, j.log())
					}
					fmt.Printf("%s:\n%s", b.Name(), j.ranks[0].text())
				}
			})
		}
	}
}
