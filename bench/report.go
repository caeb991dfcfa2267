//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// A result holds the samples of one benchmark at one size.
type result struct {
	Benchmark string  `json:"benchmark"`
	Provider  string  `json:"provider"`
	Mapped    bool    `json:"mapped"`
	Ranks     int     `json:"ranks"`
	Size      int     `json:"size"`
	Unit      string  `json:"unit"`
	Min       float64 `json:"min"`
	Median    float64 `json:"median"`
	P99       float64 `json:"p99"`
	Ratio     float64 `json:"ratio,omitempty"` // to the best of its group

	Mean       float64 `json:"mean"`
	Operations int     `json:"operations"`
	// Means of ranks' own times: of all ranks, of the fastest and of the slowest.
	Average float64 `json:"average"`
	Fastest float64 `json:"fastest"`
	Slowest float64 `json:"slowest"`
	Tails   *tails  `json:"tails,omitempty"`

	benchmark *benchmark
	turns     []float64 // medians
	taken     bool
}

// printSize prints the results of a size, in layouts that have a line for each.
func (o *options) printSize(results []result) {
	switch {
	case o.json:
		printJSON(o.out, results)
	case o.benchstat:
		printBenchstat(o.out, results)
	}
}

// printGroup prints the results of all sizes, in layouts that have tables.
func (o *options) printGroup(group []benchmark, results []result) {
	switch {
	case o.json, o.benchstat:
	case o.osu:
		o.printOSU(group, results)
	default:
		printTables(o.out, group, results)
	}
}

// rate compares the results of a group with the best of them.
func rate(group []benchmark, results []result) {
	if len(results) < 2 {
		return
	}
	best := results[0].Median
	for _, r := range results {
		if group[0].unit.higher == (r.Median > best) {
			best = r.Median
		}
	}
	for i := range results {
		results[i].Ratio = results[i].Median / best
		if group[0].unit.higher {
			results[i].Ratio = best / results[i].Median
		}
	}
}

// printJSON prints a line of JSON for each result. bench/compare reads them.
func printJSON(w io.Writer, results []result) {
	encoder := json.NewEncoder(w)
	for _, r := range results {
		encoder.Encode(r) //nolint:errcheck // numbers and strings
	}
}

// printTables prints a table for each benchmark of a group.
func printTables(w io.Writer, group []benchmark, results []result) {
	for _, b := range group {
		first := true
		for _, r := range results {
			if r.Benchmark != b.name {
				continue
			}
			if first {
				fmt.Fprintf(w, "# gopgas %s: %s; %s, %d ranks\n", b.name, b.about, r.path(), r.Ranks)
				fmt.Fprintf(w, "# %-8s %16s %16s %16s %10s%s\n", "Size", heading(b.unit), "Min", "P99", "Ratio", r.Tails.heading())
				first = false
			}
			fmt.Fprintf(w, "%-10d %16.4f %16.4f %16.4f %10s%s\n", r.Size, r.Median, r.Min, r.P99, r.ratio(), r.Tails)
		}
		if first {
			fmt.Fprintf(w, "# gopgas %s: does not apply here\n", b.name)
		}
	}
}

// heading returns the head of a column of figures, as the OSU suite writes it.
func heading(u unit) string {
	switch u.name {
	case megabytes().name:
		return "Bandwidth (" + u.name + ")"
	case millions().name:
		return "Rate (" + u.name + ")"
	case kibibytes().name:
		return "Memory (" + u.name + ")"
	}
	return "Latency (" + u.name + ")"
}

// ratio returns the ratio to the floor. A star marks the path that gopgas takes by itself.
func (r *result) ratio() string {
	s := "-"
	if r.Ratio > 0 {
		s = fmt.Sprintf("%.2f", r.Ratio)
	}
	if r.taken {
		s += "*"
	}
	return s
}

// path names the way from rank 0 to the target.
func (r *result) path() string {
	if r.Mapped {
		return r.Provider + " mapped"
	}
	return r.Provider + " queued"
}
