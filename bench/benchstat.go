//go:build linux

package main

import (
	"fmt"
	"io"
	goruntime "runtime"
	"strings"
)

// printBenchstat prints the medians of turns in the format of Go's benchmarks, which
// benchstat reads. Times are in nanoseconds.
func printBenchstat(w io.Writer, results []result) {
	for _, r := range results {
		values := r.turns
		if len(values) == 0 {
			values = []float64{r.Median} // setup took the samples
		}
		for _, v := range values {
			fmt.Fprintln(w, r.benchstat(v))
		}
	}
}

// benchstat returns one line.
func (r *result) benchstat(v float64) string {
	var name strings.Builder
	for word := range strings.SplitSeq(r.Benchmark, "_") {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	unit := strings.ReplaceAll(r.Unit, "/s", "/sec")
	switch r.Unit {
	case micros().name:
		unit, v = "ns/op", v*1000
	case megabytes().name:
		unit = r.Unit // as Go's own benchmarks
	}
	return fmt.Sprintf("Benchmark%s/%s/ranks=%d/size=%d-%d %d %.6g %s",
		name.String(), r.Provider, r.Ranks, r.Size, goruntime.GOMAXPROCS(0), max(r.Operations/turns, 1), v, unit)
}
