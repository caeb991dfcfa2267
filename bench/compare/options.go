//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options holds the command line.
type options struct {
	providers []string
	rounds    int

	// Of versions.
	ab         bool
	old, new   string // commits or folders
	benchmarks []string
	sizes      string
	time       time.Duration
	runs       int

	// Of peers.
	quick  bool
	groups []string // names; all if empty
	ranks  []int    // of collective calls
	each   time.Duration
	raw    string
	page   string
	renews string
	from   string
}

// parse reads the command line. Flags may follow the two versions, too.
func parse(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.BoolVar(&o.ab, "ab", false, "compare two versions: -ab OLD NEW")
	benchmarks := flags.String("bench", "put_latency,put_notify_latency,rpipe_latency,coll_allreduce", "with -ab: benchmarks, as go run ./bench -list has them")
	providers := flags.String("provider", "shm,tcp", "providers")
	flags.StringVar(&o.sizes, "size", "8,4K,256K,1M", "with -ab: sizes in bytes")
	flags.DurationVar(&o.time, "time", 50*time.Millisecond, "with -ab: time of each benchmark and size in a turn")
	flags.IntVar(&o.rounds, "rounds", 12, "rounds of each run or group; at least 6 with -ab")
	flags.IntVar(&o.runs, "runs", 2, "with -ab: runs in which a cell must be slower to fail")
	flags.BoolVar(&o.quick, "quick", false, "fewer figures, in under three minutes")
	groups := flags.String("group", "", "groups of figures: "+strings.Join(groupNames(), ", ")+"; all if empty")
	ranks := flags.String("ranks", "2,4,8", "numbers of ranks of the groups of collective calls")
	flags.DurationVar(&o.each, "each", time.Minute, "the longest time of a group")
	flags.StringVar(&o.raw, "raw", "compare.jsonl", "write raw figures to this file; none if empty")
	flags.StringVar(&o.page, "page", "compare.html", "write the page of curves to this file; none if empty")
	flags.StringVar(&o.renews, "results", "", "renew the figures of this page of results, between its marks; docs/benchmarks-results.md has them")
	flags.StringVar(&o.from, "from", "", "read the raw figures of an earlier run; measure nothing")
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
	if *groups != "" {
		o.groups = strings.Split(*groups, ",")
	}
	for word := range strings.SplitSeq(*ranks, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("-ranks %q: want numbers of ranks, such as 2,4,8: %w", *ranks, err)
		}
		o.ranks = append(o.ranks, n)
	}
	if o.ab && len(versions) == 2 {
		o.old, o.new = versions[0], versions[1]
	}
	return o, o.check(versions)
}

// check refuses settings that would give no figures, or figures without an interval.
func (o *options) check(versions []string) error {
	switch {
	case o.ab && len(versions) != 2:
		return errors.New("give two versions: -ab OLD NEW")
	case !o.ab && len(versions) > 0:
		return fmt.Errorf("unexpected %q; -ab OLD NEW compares versions", versions[0])
	case o.ab && o.rounds < leastRounds:
		return fmt.Errorf("%d rounds give no interval: at least %d", o.rounds, leastRounds)
	case o.rounds < 1:
		return fmt.Errorf("%d rounds: at least 1", o.rounds)
	case o.runs < 1:
		return fmt.Errorf("%d runs: at least 1", o.runs)
	case o.each < time.Second:
		return fmt.Errorf("-each %v: at least 1s", o.each)
	}
	for _, p := range o.providers {
		if !o.ab && p != "shm" && p != "tcp" {
			return fmt.Errorf("-provider %q: peers run beside shm and tcp", p)
		}
	}
	if slices.Min(o.ranks) < 2 {
		return errors.New("-ranks: at least 2 ranks")
	}
	for _, g := range o.groups {
		if !slices.Contains(groupNames(), g) {
			return fmt.Errorf("-group %q: want some of %s", g, strings.Join(groupNames(), ", "))
		}
	}
	return nil
}
