// Compare measures whether one version of gopgas is slower than another.
//
//	go run ./bench/compare -ab OLD NEW                 two commits, or folders with grun and bench
//	go run ./bench/compare -ab HEAD~5 HEAD -bench put_latency -size 8,4K -provider shm
//
// # How it measures
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
	"time"
)

// options holds the command line.
type options struct {
	old, new   string // commits or folders
	benchmarks []string
	providers  []string
	sizes      string
	time       time.Duration
	rounds     int
	runs       int
}

func main() {
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	failed, err := o.compare(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
	if failed > 0 {
		fmt.Printf("%d cells are slower in all %d runs\n", failed, o.runs)
		os.Exit(1)
	}
	fmt.Printf("no cell is slower in all %d runs\n", o.runs)
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	ab := flags.Bool("ab", false, "compare two versions: -ab OLD NEW")
	benchmarks := flags.String("bench", "put_latency,put_notify_latency,rpipe_latency,coll_allreduce", "benchmarks, as go run ./bench -list has them")
	providers := flags.String("provider", "shm,tcp", "providers")
	flags.StringVar(&o.sizes, "size", "8,4K,256K,1M", "sizes in bytes")
	flags.DurationVar(&o.time, "time", 50*time.Millisecond, "time of each benchmark and size in a turn")
	flags.IntVar(&o.rounds, "rounds", 12, "rounds of each run; at least 6")
	flags.IntVar(&o.runs, "runs", 2, "runs in which a cell must be slower to fail")
	var versions []string
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if args = flags.Args(); len(args) > 0 {
			versions, args = append(versions, args[0]), args[1:]
		}
	}
	o.benchmarks, o.providers = strings.Split(*benchmarks, ","), strings.Split(*providers, ",")
	switch {
	case !*ab || len(versions) != 2:
		return nil, errors.New("give two versions: -ab OLD NEW")
	case o.rounds < leastRounds:
		return nil, fmt.Errorf("%d rounds give no interval: at least %d", o.rounds, leastRounds)
	case o.runs < 1:
		return nil, fmt.Errorf("%d runs: at least 1", o.runs)
	}
	o.old, o.new = versions[0], versions[1]
	return o, nil
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
