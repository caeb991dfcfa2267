//go:build linux

// Compare measures gopgas beside MPI, OpenSHMEM and the machine's limits, or one version
// of gopgas beside another.
//
//	go run ./bench/compare                             the peers; half an hour
//	go run ./bench/compare -quick                      fewer figures, in under three minutes
//	go run ./bench/compare -group notify,atomics -provider tcp
//	go run ./bench/compare -from compare.jsonl         the tables of an earlier run
//	go run ./bench/compare -results docs/benchmarks-results.md
//	                                                   the peers, and a new page of results
//	go run ./bench/compare -ab OLD NEW                 two commits, or folders with grun and bench
//	go run ./bench/compare -ab HEAD~5 HEAD -bench put_latency -size 8,4K -provider shm
//
// # How it measures peers
//
// All systems take turns: gopgas, and each library in each configuration that may be its
// best (bench/peers). They do the same work with the same binding. A group of figures takes
// at most a minute. The order rotates from round to round. A cell (benchmark, provider,
// size, ranks, binding) compares gopgas with the configuration whose median is the best of
// all rounds. Each round gives a ratio; above 1, gopgas is behind.
//
// A figure of a virtual machine depends on the distance of its cores, which may change at any
// moment. So a probe runs ahead of each turn and behind it. It measures the time of a cache line
// from one core to another, between two processes. A round in which that time changed twofold gives
// no ratio; the table counts such rounds.
//
// The raw figures stay in -raw, one JSON object a line, and -page draws all of them. The page needs no
// network.
//
// # How it measures versions
//
// All jobs run in turns, two ranks each, bound to a core each. A round runs OLD, OLD once
// more and NEW, in an order that rotates. So each cell (benchmark, provider, size) gets
// two ratios a round:
//
//	A/A   OLD to OLD    the noise of this machine
//	A/B   NEW to OLD    above 1: NEW is slower
//
// The interval of a ratio covers its median with a confidence of at least 95 percent
// (order statistics, no distribution assumed). A cell is slower where the A/B interval
// lies above the A/A interval. Since a machine changes within minutes, a cell fails only
// if it is slower in every one of -runs runs. The exit code is 1 if a cell fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	if code, ours := echoed(os.Getenv(echoEnv)); ours {
		os.Exit(code)
	}
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	failed, err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

// run compares, and reports whether a version is slower.
func (o *options) run(ctx context.Context) (failed bool, err error) {
	if !o.ab {
		return false, o.comparePeers(ctx, os.Stdout)
	}
	cells, err := o.compare(ctx)
	switch {
	case err != nil:
		return false, err
	case cells > 0:
		fmt.Printf("%d cells are slower in all %d runs\n", cells, o.runs)
	default:
		fmt.Printf("no cell is slower in all %d runs\n", o.runs)
	}
	return cells > 0, nil
}

// compare runs all jobs, prints a table for each run, and returns the number of failed
// cells.
func (o *options) compare(ctx context.Context) (failed int, err error) {
	dir, err := os.MkdirTemp("", "gopgas-compare")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system's cleaning takes the rest
	before, err := build(ctx, o.old, dir+"/old")
	if err != nil {
		return 0, err
	}
	after, err := build(ctx, o.new, dir+"/new")
	if err != nil {
		return 0, err
	}
	slower := map[cell]int{}
	for run := range o.runs {
		fmt.Printf("run %d of %d: %s to %s, %d rounds, load %s\n", run+1, o.runs, o.new, o.old, o.rounds, load())
		m := newMeasurement()
		for round := range o.rounds {
			if err := m.round(ctx, o, round, before, after); err != nil {
				return 0, err
			}
		}
		for _, c := range m.print(os.Stdout) {
			slower[c]++
		}
	}
	for _, times := range slower {
		if times == o.runs {
			failed++
		}
	}
	return failed, nil
}

// load returns the load of this machine in the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
