// Sim replays the algorithms of collective calls for many ranks and draws where each of them
// takes over. It measures the constants of the model on this machine, or reads them from a file.
//
//	go run ./bench/sim                                       measure, replay, write sim.html
//	go run ./bench/sim -save constants.json                  keep the constants
//	go run ./bench/sim -check                                compare replays with measured calls of two ranks
//	go run ./bench/sim -constants constants.json -ranks 1024 -per-host 8 -sizes 8,64K
//
// It runs the functions that jobs run: see package collectives/loggp for the model. Ranks of
// one host reach each other by the constants of shm, ranks of different hosts by those of tcp.
// A size is that of one vector, or of one rank's block.
//
// The table shows, for each collective, the algorithms from size to size: the fastest one, which a
// table of measurements would name, and the one of the built-in rules. The page draws them all. In
// some algorithms a rank's messages or memory grow with the number of ranks, not with its
// logarithm. Sim replays these for at most 4,096 ranks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopgas/gopgas/collectives/loggp"
	"github.com/gopgas/gopgas/runtime"
)

// options holds the command line.
type options struct {
	ranks       []int
	perHost     int
	sizes       []int
	collectives []string
	constants   string
	save, page  string
	check       bool
	most        int64
	each        time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parse(os.Args[1:])
	if err == nil {
		err = o.run(ctx, os.Stdout, os.Stderr)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}

// parse reads the flags.
func parse(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "Usage: go run ./bench/sim [flags]\n\nReplays collective calls for many ranks by the LogGP model and writes a page of curves.\n\nFlags:")
		flags.PrintDefaults()
	}
	ranks, sizes, of := o.define(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected %q; -h shows the flags", flags.Arg(0))
	}
	var err error
	if o.collectives, err = collectivesOf(*of); err != nil {
		return nil, err
	}
	if o.ranks, err = numbers("-ranks", *ranks, strconv.Atoi, loggp.MostRanks); err != nil {
		return nil, err
	}
	if o.sizes, err = numbers("-sizes", *sizes, parseBytes, loggp.MostBytes); err != nil {
		return nil, err
	}
	if o.perHost < 1 {
		return nil, fmt.Errorf("-per-host %d: want 1 or more", o.perHost)
	}
	return o, nil
}

// define defines the flags. Those that it returns are lists, which parse checks.
func (o *options) define(flags *flag.FlagSet) (ranks, sizes, collectives *string) {
	ranks = flags.String("ranks", "2,16,256,4096,100000", "numbers of ranks")
	sizes = flags.String("sizes", "8,64,512,4K,32K,256K,1M", "bytes of a vector, or of one rank's block")
	collectives = flags.String("collectives", "", "names of collectives, such as all-reduce,scan; all if empty")
	flags.IntVar(&o.perHost, "per-host", 8, "ranks of each host")
	flags.StringVar(&o.constants, "constants", "", "file of constants, which -save wrote; measured here if empty")
	flags.StringVar(&o.save, "save", "", "write the constants to this file")
	flags.BoolVar(&o.check, "check", false, "measure calls of two bound ranks, and compare them with their replays")
	flags.StringVar(&o.page, "page", "sim.html", "write the page of curves to this file; none if empty")
	flags.Int64Var(&o.most, "messages", 2_000_000, "leave out replays of more messages")
	flags.DurationVar(&o.each, "time", 200*time.Millisecond, "time to measure each constant")
	return ranks, sizes, collectives
}

// collectivesOf reads a list of names of collectives; "" stands for all.
func collectivesOf(list string) ([]string, error) {
	all := loggp.Collectives()
	if list == "" {
		return all, nil
	}
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("-collectives %s: want some of %s", name, strings.Join(all, ","))
		}
	}
	return names, nil
}

// parseBytes reads a size such as 4K.
func parseBytes(s string) (int, error) {
	n, err := runtime.ParseSize(s)
	return int(n), err
}

// numbers reads a list of numbers from 1 to most.
func numbers(name, list string, read func(string) (int, error), most int) (all []int, err error) {
	for s := range strings.SplitSeq(list, ",") {
		n, err := read(s)
		if err != nil || n < 1 || n > most {
			return nil, fmt.Errorf("%s %s: want numbers from 1 to %d", name, s, most)
		}
		all = append(all, n)
	}
	return all, nil
}

// run measures, replays, and writes the results.
func (o *options) run(ctx context.Context, out, news io.Writer) error {
	var dir programs
	if o.constants == "" || o.check {
		var err error
		dir, err = build(ctx, news)
		defer os.RemoveAll(string(dir)) //nolint:errcheck // a folder for programs, among temporary files
		if err != nil {
			return err
		}
	}
	c, err := o.constantsOf(ctx, dir, news)
	if err != nil {
		return err
	}
	if o.save != "" {
		if err := c.write(o.save); err != nil {
			return err
		}
	}
	c.print(out)
	if o.check {
		return o.compare(ctx, c, dir, out, news)
	}
	return o.simulate(ctx, c, out, news)
}

// simulate replays the starts and the collective calls with the constants c, and prints and draws their times.
func (o *options) simulate(ctx context.Context, c *constants, out, news io.Writer) error {
	starts := c.starts(o.ranks)
	printStarts(out, starts)
	groups, err := o.replay(ctx, c, news)
	if err != nil {
		return err
	}
	printGroups(out, groups)
	if o.page == "" {
		return nil
	}
	if err := writePage(o.page, c, starts, groups); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe curves are in %s.\n", o.page)
	return nil
}

// constantsOf reads the constants or measures them.
func (o *options) constantsOf(ctx context.Context, dir programs, news io.Writer) (*constants, error) {
	if o.constants != "" {
		return readConstants(o.constants)
	}
	return measure(ctx, dir, o.each, news)
}
