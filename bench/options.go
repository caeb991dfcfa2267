//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gopgas/gopgas/runtime"
)

// options holds the command line.
type options struct {
	knobs
	names     []string
	sizes     []int
	time      time.Duration
	full      bool // -f
	osu       bool // the names are OSU's, and so is the layout
	json      bool
	benchstat bool
	list      bool
	exact     bool // a name stands for no group
	out       io.Writer
	began     time.Time // of this process; zero in a test
}

// Knobs change the work of benchmarks. All ranks have the same.
type knobs struct {
	sync       string // -s; empty: the benchmark's own
	window     int    // operations under way in a bandwidth test
	buffers    int    // that a benchmark uses in turn
	lockstep   bool   // a barrier follows each collective call
	iterations int    // for each size; 0: for a time
	warm       int    // iterations ahead of them
	tails      bool   // time single operations
}

// parse reads names and flags, in any order.
func parse(args []string, out io.Writer) (*options, error) {
	o := &options{out: out}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	sizes := flags.String("size", "8,1K,4K,64K,1M", "sizes in bytes, for benchmarks that have one")
	powers := flags.String("m", "", "[MIN:]MAX: powers of two in bytes, in place of -size (OSU)")
	flags.DurationVar(&o.time, "time", 500*time.Millisecond, "time for each benchmark and size")
	flags.IntVar(&o.iterations, "i", 0, "iterations for each size, in place of -time (OSU)")
	flags.IntVar(&o.warm, "x", 0, "iterations to warm up (OSU); a tenth of -i if 0")
	flags.StringVar(&o.sync, "s", "", "synchronization: flush, flush_local, lock or fence (OSU)")
	flags.BoolVar(&o.full, "f", false, "print the least and greatest mean of a rank, and iterations (OSU)")
	flags.IntVar(&o.window, "W", 64, "operations under way in a bandwidth test (OSU)")
	flags.BoolVar(&o.tails, "z", false, "time single operations and print percentiles (OSU)")
	flags.IntVar(&o.buffers, "buffers", 1, "buffers that a benchmark uses in turn; 64 keep caches cold")
	flags.BoolVar(&o.lockstep, "lockstep", false, "a barrier follows each collective call and counts as time")
	flags.BoolVar(&o.json, "json", false, "print one JSON object a line")
	flags.BoolVar(&o.benchstat, "benchstat", false, "print lines for the program benchstat")
	flags.BoolVar(&o.exact, "exact", false, "a name stands for the benchmark of this name, and not for its group")
	flags.BoolVar(&o.list, "list", false, "print the benchmarks' names, and OSU's names for them")
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			break
		}
		o.names, args = append(o.names, flags.Arg(0)), flags.Args()[1:]
	}
	named := slices.ContainsFunc(o.names, isOSU)
	sized := false
	flags.Visit(func(f *flag.Flag) { sized = sized || f.Name == "size" })
	if named && !sized && *powers == "" {
		*powers = "1:4M" // OSU's default
	}
	o.osu = named && !o.json && !o.benchstat
	return o, errors.Join(o.readSizes(*sizes, *powers), o.check())
}

func isOSU(name string) bool { return strings.HasPrefix(name, "osu_") }

// maxSize bounds -size, so that a typing error does not ask for all memory.
const maxSize = 1 << 30

// readSizes reads -m, or else -size.
func (o *options) readSizes(list, powers string) error {
	if powers != "" {
		least, most, ranged := strings.Cut(powers, ":")
		if !ranged {
			least, most = "1", powers
		}
		from, err := readSize("-m", least)
		if err != nil {
			return err
		}
		to, err := readSize("-m", most)
		if err != nil {
			return err
		}
		for n := 1; n <= to; n *= 2 {
			if n >= from {
				o.sizes = append(o.sizes, n)
			}
		}
		if len(o.sizes) == 0 {
			return fmt.Errorf("-m %s: no power of two lies between", powers)
		}
		return nil
	}
	for s := range strings.SplitSeq(list, ",") {
		n, err := readSize("-size", s)
		if err != nil {
			return err
		}
		o.sizes = append(o.sizes, n)
	}
	return nil
}

// readSize reads a size of the command line. name is its flag.
func readSize(name, s string) (int, error) {
	n, err := runtime.ParseSize(s)
	if err == nil && (n < 1 || n > maxSize) {
		err = fmt.Errorf("%s %s: sizes go from 1 to %d", name, s, maxSize)
	}
	return int(n), err
}

// check refuses options that no benchmark keeps.
func (o *options) check() error {
	switch {
	case len(o.names) == 0 && !o.list:
		return errors.New("name benchmarks, or all; -list prints their names")
	case o.iterations < 0 || o.warm < 0:
		return fmt.Errorf("-i %d -x %d: want 0 or more", o.iterations, o.warm)
	case o.window < 1 || o.window > maxWindow:
		return fmt.Errorf("-W %d: want 1 to %d", o.window, maxWindow)
	case o.buffers < 1 || o.buffers > maxBuffers:
		return fmt.Errorf("-buffers %d: want 1 to %d", o.buffers, maxBuffers)
	case o.json && o.benchstat:
		return errors.New("-json and -benchstat: choose one")
	}
	groups, err := o.groups()
	if err != nil {
		return err
	}
	for _, g := range groups {
		for _, b := range g {
			if err := b.checkSync(o.sync); err != nil {
				return err
			}
		}
	}
	return nil
}

// Bounds of -W and -buffers.
const (
	maxWindow  = 1 << 16
	maxBuffers = 1 << 12
)

// checkSync refuses a synchronization that the benchmark does not have.
func (b *benchmark) checkSync(sync string) error {
	known := strings.Split(b.syncs, ",")
	switch {
	case sync == "" || slices.Contains(known, sync):
		return nil
	case b.syncs == "":
		return fmt.Errorf("-s %s: %s has no synchronization to choose; leave -s out", strconv.Quote(sync), b.name)
	}
	return fmt.Errorf("-s %s: %s has %s", strconv.Quote(sync), b.name, strings.Join(known, ", "))
}

// groups returns the chosen benchmarks; benchmarks to compare are in one group.
func (o *options) groups() ([][]benchmark, error) {
	known := benchmarks()
	var chosen []benchmark
	for _, name := range o.names {
		found := slices.DeleteFunc(slices.Clone(known), func(b benchmark) bool {
			return name != "all" && name != b.name && (o.exact || name != b.group) && name != b.osu
		})
		if len(found) == 0 || name == "" {
			return nil, fmt.Errorf("no benchmark %q; -list prints their names", name)
		}
		if isOSU(name) != isOSU(o.names[0]) {
			return nil, errors.New("names of OSU print OSU's columns: run other names apart")
		}
		chosen = append(chosen, found...)
	}
	var groups [][]benchmark
	for _, b := range known {
		if !slices.ContainsFunc(chosen, func(c benchmark) bool { return c.name == b.name }) {
			continue
		}
		if last := len(groups) - 1; last >= 0 && groups[last][0].base() == b.base() {
			groups[last] = append(groups[last], b)
		} else {
			groups = append(groups, []benchmark{b})
		}
	}
	return groups, nil
}
