//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gopgas/gopgas/internal/tuned"
	"github.com/gopgas/gopgas/runtime"
)

const tuneLong = `Collective calls choose an algorithm by the length of the data, the number of
ranks and the way that they reach each other. The built-in choice is good on
most machines. grun tune measures all algorithms on this machine, or on the hosts
of -H or --hostfile, and keeps those that are faster in a table in this user's
cache directory. Jobs that grun starts later on the same hosts choose by it.

grun tune runs two jobs for each provider and number of ranks. The first measures
all algorithms. The second compares those that seem faster with the built-in
choice, in turns: in a collectives.Buffer, in ordinary slices, with a barrier before
each call, and with an operator of the program. The table gets an algorithm only if
it was faster each time beyond the noise. The jobs use all cores for --time
altogether: other programs should rest meanwhile. If a job fails, grun tune saves
nothing.

A measurement holds for teams of the same places only: as many ranks on each host,
as many for each core, the same binding (--bind-to) and providers. Other teams use
the built-in choice; GRUN_VERBOSE=1 says so. Measurements of other places stay in
the table, the latest ones where it is full. Ranks that cannot use the table, on a
machine of another kind, have the teams with them use none; grun's job says so.

  GRUN_TUNED=off          a job uses no table
  GRUN_TUNED=FILE         a job uses this table, not that of its hosts
  GRUN_EXPLAIN=collectives   rank 0 prints its algorithm for each call, and the reason`

const tuneExamples = `  grun tune                                 all collectives, in two minutes
  grun tune --time 10m --ranks 2,4,8,16     more exactly, and for larger teams
  grun tune --bind-to core                  for jobs whose ranks are bound
  grun tune -H a:2,b:1,c:3                  for six ranks on three hosts, and jobs on them
  grun tune --provider tcp --only all-reduce,broadcast
  grun tune --show                          the saved table
  grun tune --output cluster.json           and then GRUN_TUNED=cluster.json grun -n 8 ./prog`

// tuneOptions holds the flags of grun tune.
type tuneOptions struct {
	start     options // where and how ranks start, as in any job
	ranks     []int
	providers []string
	only      []string
	time      time.Duration // for one job, in a rank that measures
	largest   string
	max       int64
	output    string
	show      bool
	asRank    bool
	rivals    []string // rivals to compare with the built-in choice, in a rank that checks
	apart     bool     // a barrier comes before each call
}

// asRankFlag marks the ranks that grun tune starts, checkFlag those that check. With
// apartFlag, ranks measure calls of which none begins before the last one has ended.
const (
	asRankFlag = "as-rank"
	checkFlag  = "check"
	apartFlag  = "apart"
)

// newTune returns the command grun tune.
func newTune() *cobra.Command {
	o := &tuneOptions{time: 2 * time.Minute, start: options{stdin: "none"}}
	cmd := &cobra.Command{
		Use:     "tune",
		Short:   "Measure which collective algorithms are best on this machine or other hosts, for later jobs",
		Long:    tuneLong,
		Example: tuneExamples,
		Args:    cobra.NoArgs,
		RunE:    o.run,
	}
	o.define(cmd.Flags())
	return cmd
}

// run prints the table, starts the jobs that measure, or is a rank of such a job.
func (o *tuneOptions) run(cmd *cobra.Command, _ []string) error {
	if err := o.check(); err != nil {
		return err
	}
	switch {
	case o.asRank && len(o.rivals) > 0:
		runtime.Main(o.compareAll)
		return nil
	case o.asRank:
		runtime.Main(o.measure)
		return nil
	case o.show:
		return o.print(cmd.OutOrStdout())
	}
	return o.tune(cmd.OutOrStdout(), cmd.ErrOrStderr())
}

// define defines the flags. The help leaves out those that grun tune sets for its own ranks.
func (o *tuneOptions) define(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.IntSliceVarP(&o.ranks, "ranks", "n", nil, "numbers of ranks to measure with (default 2,4,8; on hosts their slots)")
	flags.StringSliceVar(&o.providers, "provider", nil, "providers to measure: shm, tcp, ibv or auto (default shm,tcp; on hosts auto)")
	flags.StringSliceVar(&o.only, "only", nil, "collectives to measure, such as all-reduce (default all)")
	flags.Var(span{&o.time}, "time", "how long to measure, altogether")
	flags.StringVar(&o.largest, "max", "4MiB", "the longest buffer to measure with")
	flags.StringVarP(&o.output, "output", "o", "", "the table's file, if not this machine's own")
	flags.BoolVar(&o.show, "show", false, "print the table, and measure nothing")
	o.start.defineStart(flags)
	flags.BoolVar(&o.asRank, asRankFlag, false, "")
	flags.StringSliceVar(&o.rivals, checkFlag, nil, "")
	flags.BoolVar(&o.apart, apartFlag, false, "")
	for _, name := range []string{asRankFlag, checkFlag, apartFlag} {
		if err := flags.MarkHidden(name); err != nil {
			panic(err) // defined above
		}
	}
}

// check parses the flags.
func (o *tuneOptions) check() (err error) {
	if o.max, err = runtime.ParseSize(o.largest); err != nil || o.max < tuneElement || o.max > tuneMost {
		return fmt.Errorf("--max %s: want a size from %d bytes to %s", o.largest, tuneElement, bytesText(tuneMost))
	}
	if o.time <= 0 {
		return errors.New("--time: want a length of time such as 2m")
	}
	for _, n := range o.ranks {
		if n < 2 {
			return fmt.Errorf("--ranks %d: one rank has nothing to choose; want two or more", n)
		}
	}
	for _, p := range o.providers {
		if !slices.Contains([]string{"auto", "shm", "tcp", "ibv"}, p) {
			return fmt.Errorf("--provider %q; choose from shm, tcp, ibv and auto", p)
		}
	}
	for _, name := range o.only {
		if !slices.Contains(tuneNames(), name) {
			return fmt.Errorf("--only %q; choose from %s", name, strings.Join(tuneNames(), ", "))
		}
	}
	return nil
}

// tuneMost bounds --max, so that a typing error does not ask for all memory.
const tuneMost = 1 << 28

// tuneNames returns the names of the collective calls that grun tune measures.
func tuneNames() (names []string) {
	for _, c := range tuneCalls() {
		names = append(names, c.name)
	}
	return names
}

// measures reports whether a collective is to be measured.
func (o *tuneOptions) measures(name string) bool {
	return len(o.only) == 0 || slices.Contains(o.only, name)
}

// calls returns the collectives to measure.
func (o *tuneOptions) calls() []tuneCall {
	return slices.DeleteFunc(tuneCalls(), func(c tuneCall) bool { return !o.measures(c.name) })
}

// sizes returns the sizes in bytes: denser where choices change.
func (o *tuneOptions) sizes() []int {
	var sizes []int
	for size := tuneElement; size <= int(o.max); {
		sizes = append(sizes, size)
		if size < 4<<10 {
			size *= 8
		} else {
			size *= 4
		}
	}
	return sizes
}

// print shows the saved table.
func (o *tuneOptions) print(w io.Writer) error {
	spec, err := o.start.spec()
	if err != nil {
		return err
	}
	path, err := o.file(spec.Hosts)
	if err != nil {
		return err
	}
	table, err := tuned.Read(path)
	if errors.Is(err, os.ErrNotExist) {
		return &codedError{1, fmt.Errorf("nothing was measured here yet: there is no %s; see grun tune -h", path)}
	}
	if err != nil {
		return &codedError{1, fmt.Errorf("%s: %w", path, err)}
	}
	for i, m := range table.Machines {
		fmt.Fprintf(w, "%s: %v\n", []string{path, "and"}[min(i, 1)], m)
	}
	printTable(w, table)
	return nil
}
