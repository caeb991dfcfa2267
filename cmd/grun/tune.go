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

	"github.com/gopgas/gopgas/internal/tuned"
	"github.com/gopgas/gopgas/runtime"
)

const tuneLong = `Collective calls choose an algorithm by the length of the data, the number of
ranks and the way that they reach each other. The built-in choice is good on
most machines. grun tune measures all algorithms on this machine, and keeps the
best ones in a table in this user's cache directory. Jobs that grun starts later
choose by that table.

grun tune runs a job for each provider and number of ranks. These jobs use all
cores for --time altogether: other programs should rest meanwhile. If a job
fails, grun tune saves nothing.

A team of another size chooses like the next larger one in the table. Teams that
are larger than all of them, and teams on several hosts, use no table. A built-in
choice stays unless another algorithm was quicker by more than 7 percent.

  GRUN_TUNED=off          a job uses no table
  GRUN_TUNED=FILE         a job uses this table, not the machine's own
  GRUN_EXPLAIN=collectives   rank 0 prints its algorithm for each call, and the reason`

const tuneExamples = `  grun tune                                 all collectives, in two minutes
  grun tune --time 10m --ranks 2,4,8,16     more exactly, and for larger teams
  grun tune --provider tcp --only all-reduce,broadcast
  grun tune --show                          the saved table
  grun tune --output cluster.json           and then GRUN_TUNED=cluster.json grun -n 8 ./prog`

// tuneOptions holds the flags of grun tune.
type tuneOptions struct {
	ranks     []int
	providers []string
	only      []string
	time      time.Duration // for one job, in a rank that measures
	largest   string
	max       int64
	output    string
	show      bool
	asRank    bool
}

// asRankFlag marks the ranks that grun tune starts.
const asRankFlag = "as-rank"

func newTune() *cobra.Command {
	o := &tuneOptions{time: 2 * time.Minute}
	cmd := &cobra.Command{
		Use:     "tune",
		Short:   "Measure which collective algorithms are best on this machine, for later jobs",
		Long:    tuneLong,
		Example: tuneExamples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			switch {
			case o.asRank:
				runtime.Main(o.measure)
				return nil
			case o.show:
				return o.print(cmd.OutOrStdout())
			}
			return o.tune(cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntSliceVarP(&o.ranks, "ranks", "n", []int{2, 4, 8}, "numbers of ranks to measure with")
	flags.StringSliceVar(&o.providers, "provider", []string{"shm", "tcp"}, "providers to measure: shm, tcp or ibv")
	flags.StringSliceVar(&o.only, "only", nil, "collectives to measure, such as all-reduce (default all)")
	flags.Var(span{&o.time}, "time", "how long to measure, altogether")
	flags.StringVar(&o.largest, "max", "4MiB", "the longest buffer to measure with")
	flags.StringVarP(&o.output, "output", "o", "", "the table's file, if not this machine's own")
	flags.BoolVar(&o.show, "show", false, "print the table, and measure nothing")
	flags.BoolVar(&o.asRank, asRankFlag, false, "")
	if err := flags.MarkHidden(asRankFlag); err != nil {
		panic(err) // defined one line above
	}
	return cmd
}

// check parses the flags.
func (o *tuneOptions) check() (err error) {
	if o.max, err = runtime.ParseSize(o.largest); err != nil || o.max < tuneElement || o.max > tuneMost {
		return fmt.Errorf("--max %s: want a size from %d bytes to %s", o.largest, tuneElement, bytesText(tuneMost))
	}
	if o.time <= 0 {
		return errors.New("--time: want a length of time such as 2m")
	}
	if len(o.ranks) == 0 || len(o.providers) == 0 {
		return errors.New("name at least one number of ranks, and one provider")
	}
	for _, n := range o.ranks {
		if n < 2 {
			return fmt.Errorf("--ranks %d: one rank has nothing to choose; want two or more", n)
		}
	}
	for _, p := range o.providers {
		if !slices.Contains([]string{"shm", "tcp", "ibv"}, p) {
			return fmt.Errorf("--provider %q; choose from shm, tcp and ibv", p)
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

func tuneNames() (names []string) {
	for _, c := range tuneCalls() {
		names = append(names, c.name)
	}
	return names
}

// calls returns the collectives to measure.
func (o *tuneOptions) calls() []tuneCall {
	return slices.DeleteFunc(tuneCalls(), func(c tuneCall) bool {
		return len(o.only) > 0 && !slices.Contains(o.only, c.name)
	})
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

// file returns the path of the table.
func (o *tuneOptions) file() (string, error) {
	if o.output != "" {
		return o.output, nil
	}
	here, err := tuned.Here()
	if err != nil {
		return "", err
	}
	return tuned.DefaultPath(here)
}

// print shows the saved table.
func (o *tuneOptions) print(w io.Writer) error {
	path, err := o.file()
	if err != nil {
		return err
	}
	table, _, err := tuned.Load(path)
	if errors.Is(err, os.ErrNotExist) {
		return &codedError{1, fmt.Errorf("nothing was measured here yet: there is no %s; see grun tune -h", path)}
	}
	if err != nil {
		return &codedError{1, err}
	}
	fmt.Fprintf(w, "%s: %v\n\n", path, table.Machine)
	printRules(w, table.Rules, func(tuned.Rule) bool { return true })
	return nil
}
