//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"
)

// Widths of OSU's columns.
const (
	osuSize  = 10
	osuWidth = 18
)

// printOSU prints a group in the layout of OSU's programs. Scripts find the columns by the
// line "# Size". Figures have more digits than OSU's, which has two.
func (o *options) printOSU(group []benchmark, results []result) {
	b := group[0]
	fmt.Fprintf(o.out, "\n# OSU %s Test, by gopgas bench %s\n", osuTitle(b.osu), b.name)
	if b.syncs != "" {
		sync := o.sync
		if sync == "" {
			sync, _, _ = strings.Cut(b.syncs, ",")
		}
		fmt.Fprintf(o.out, "# Window creation: Allocate\n# Synchronization: %s\n", sync)
	}
	switch {
	case len(results) == 0:
		fmt.Fprintln(o.out, "# does not apply here")
	case len(group) > 1:
		printOSUOverlap(o.out, group, results)
	case b.osu == osuInit:
		for _, r := range results {
			fmt.Fprintf(o.out, "nprocs: %d, min: %.0f ms, max: %.0f ms, avg: %.0f ms\n", r.Ranks, r.Fastest/1e3, r.Slowest/1e3, r.Mean/1e3)
		}
	default:
		fmt.Fprintln(o.out, o.osuHeading(&results[0]))
		for i := range results {
			fmt.Fprintln(o.out, o.osuLine(&results[i]))
		}
	}
}

// osuTitle returns the title of a program: osu_put_latency has "put latency".
func osuTitle(name string) string {
	return strings.ReplaceAll(strings.TrimPrefix(name, "osu_"), "_", " ")
}

// columns joins a first column of OSU's with further ones.
func columns(first string, more ...string) string {
	var line strings.Builder
	fmt.Fprintf(&line, "%-*s", osuSize, first)
	for _, m := range more {
		fmt.Fprintf(&line, "%*s", osuWidth, m)
	}
	return line.String()
}

func figure(v float64) string { return fmt.Sprintf("%.4f", v) }

// osuHeading names the columns of osuLine.
func (o *options) osuHeading(r *result) string {
	b := r.benchmark
	collective := isCollective(b)
	var names []string
	switch {
	case collective:
		names = append(names, "Avg Latency(us)")
	case b.messages:
		names = append(names, "MB/s", "Messages/s")
	case b.unit.higher:
		names = append(names, "Bandwidth (MB/s)")
	default:
		names = append(names, "Latency (us)")
	}
	if o.full && collective {
		names = append(names, "Min Latency(us)", "Max Latency(us)", "Iterations")
	}
	if r.Tails != nil {
		of := " Tail Lat(us)"
		if b.unit.higher {
			of = " Tail BW(MB/s)"
		}
		names = append(names, "P50"+of, "P90"+of, "P99"+of)
	}
	if !b.sized && collective {
		return "# " + strings.TrimLeft(columns("", names...), " ")
	}
	return columns("# Size", names...)
}

// osuLine is the line of one size.
func (o *options) osuLine(r *result) string {
	b := r.benchmark
	collective := isCollective(b)
	values := []string{figure(r.Average)}
	if b.messages {
		values = []string{figure(r.Mean), figure(r.Mean * 1e6 / float64(r.Size))}
	}
	if o.full && collective {
		values = append(values, figure(r.Fastest), figure(r.Slowest), fmt.Sprint(r.Operations))
	}
	if r.Tails != nil {
		values = append(values, figure(r.Tails.P50), figure(r.Tails.P90), figure(r.Tails.P99))
	}
	if !b.sized && collective {
		return columns("", values...)
	}
	return columns(fmt.Sprint(r.Size), values...)
}

func isCollective(b *benchmark) bool { return strings.HasPrefix(b.name, "coll_") }

// printOSUOverlap prints a started call: with computation, computation alone, the call
// alone, and the share of the call that computation hid.
func printOSUOverlap(w io.Writer, group []benchmark, results []result) {
	fmt.Fprintln(w, columns("# Size", "Overall(us)", "Compute(us)", "Pure Comm.(us)", "Overlap(%)"))
	for i := 0; i+len(group) <= len(results); i += len(group) {
		pure, compute, overall := results[i].Mean, results[i+1].Mean, results[i+2].Mean
		fmt.Fprintln(w, columns(fmt.Sprint(results[i].Size), figure(overall), figure(compute), figure(pure),
			figure(hidden(overall, compute, pure))))
	}
}

// hidden returns the share of a call's time that a computation hid, in percent.
func hidden(overall, compute, pure float64) float64 {
	return 100 * min(max(1-(overall-compute)/pure, 0), 1)
}
