//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gopgas/gopgas/launcher"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// options holds grun's flags.
type options struct {
	provider      string
	iface         string
	tls           bool
	heap          string
	peerTimeout   time.Duration
	startTimeout  time.Duration
	stats         bool
	oversubscribe bool

	hosts hostFlags
	stage bool

	timeout, grace, killWait time.Duration
	keepGoing                bool

	tag       bool
	outputDir string
	stdin     string
	wdir      string
	bindTo    string
}

// program holds the flags of each program of an MPMD job.
type program struct {
	n    int
	vars []string
}

// command holds grun's command line.
type command struct {
	root *cobra.Command
	options
	first program
	more  [][]string // further programs
	code  int        // exit code of the job
}

const usageError = 2

// A codedError carries the exit code for a problem of grun's own.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// complain prints err and returns its exit code.
func complain(err error) int {
	fmt.Fprintln(os.Stderr, "grun:", err)
	var coded *codedError
	if errors.As(err, &coded) {
		return coded.code
	}
	return usageError
}

// newCommand makes grun's command line. Flags end at the program's name: the rest is the program's.
func newCommand() *command {
	c := &command{}
	c.root = &cobra.Command{
		Use:           "grun -n N [flags] PROG [args...] [: -n N PROG [args...]]...",
		Short:         "Start the ranks of a gopgas job",
		Long:          long,
		Example:       examples,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && cmd.Flags().NFlag() == 0 {
				return cmd.Help()
			}
			return c.launch(args)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	flags := c.root.Flags()
	flags.SetInterspersed(false)
	flags.SortFlags = false
	c.first.define(flags)
	c.define(flags)
	c.complete()
	c.root.AddCommand(newDoctor(c), newTune(), newVersion(), newAgent())
	return c
}

// define adds the flags that each program of an MPMD job has.
func (p *program) define(flags *pflag.FlagSet) {
	flags.IntVarP(&p.n, "np", "n", 1, "number of ranks")
	flags.StringArrayVarP(&p.vars, "env", "x", nil, "set an environment variable: -x VAR=value, or -x VAR with its value here")
}

// defineStart adds the flags that say where and how ranks start; grun tune has them, too.
func (o *options) defineStart(flags *pflag.FlagSet) {
	o.grace, o.killWait = time.Second, 2*time.Second
	o.hosts.define(flags)
	flags.Var(span{&o.startTimeout}, "start-timeout", "end the job if a host is not ready after this time (1m), or a rank has not joined so long after the first (no limit)")
	flags.StringVar(&o.iface, "iface", "", "where tcp listens: an interface, or a subnet such as 10.1.0.0/16")
	flags.BoolVar(&o.tls, "tls", false, "encrypt and authenticate what leaves a rank by the network, by TLS 1.3")
	flags.StringVar(&o.heap, "heap", "", "size of each rank's symmetric heap, such as 1GiB")
	flags.Var(span{&o.peerTimeout}, "peer-timeout", "silence after which a peer or a host counts as unreachable")
	flags.StringVar(&o.bindTo, "bind-to", "none", "bind each rank to a core, a numa node, or none; neighbors share one where ranks outnumber them")
	flags.BoolVar(&o.oversubscribe, "oversubscribe", false, "start more ranks than the hosts have slots, or more than 256 for each core")
}

// define adds the flags that a job has once.
func (o *options) define(flags *pflag.FlagSet) {
	o.defineStart(flags)
	flags.BoolVar(&o.stage, "stage", false, "copy the program to the other hosts for the time of the job; packages that grun builds always are")
	flags.StringVar(&o.provider, "provider", "", "providers that move the bytes: auto, shm, tcp or ibv, or several in order of preference, such as shm,ibv,tcp")
	flags.BoolVar(&o.stats, "stats", false, "print a table of each rank's operations on each peer when the job ends")
	flags.Var(span{&o.timeout}, "timeout", "end the job after this time, with exit code 124")
	flags.Var(span{&o.grace}, "grace", "time that survivors of a failure get to end by themselves before SIGTERM")
	flags.Var(span{&o.killWait}, "kill-wait", "time from the first SIGTERM or SIGINT to SIGKILL")
	flags.BoolVar(&o.keepGoing, "keep-going", false, "let survivors of a failure run on")
	flags.BoolVar(&o.tag, "tag-output", false, `put "[rank] ", or "[rank@host] ", before each line of output`)
	flags.StringVar(&o.outputDir, "output", "", "write the output of rank N to DIR/rank-N.log instead")
	flags.StringVar(&o.stdin, "stdin", "0", "ranks that read standard input: a rank, all or none")
	flags.StringVar(&o.wdir, "wdir", "", "working directory of the ranks")
}

// complete gives the shell the values of flags.
func (c *command) complete() {
	for flag, values := range map[string][]string{
		"provider": {"auto", "shm", "tcp", "ibv", "shm,ibv", "shm,ibv,tcp"},
		"bind-to":  {"none", "core", "numa"},
		"stdin":    {"all", "none"},
		"map-by":   {"slot", "node"},
	} {
		values := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
		if err := c.root.RegisterFlagCompletionFunc(flag, values); err != nil {
			panic(err) // a flag of this name is defined above
		}
	}
}

// spec translates the flags; the caller adds programs and streams.
func (o *options) spec() (spec launcher.Spec, err error) {
	if err := o.hosts.spec(&spec); err != nil {
		return spec, err
	}
	env, err := o.environment(spec.Hosts)
	if err != nil {
		return spec, err
	}
	spec.Env = append(env, spec.Env...)
	if spec.Bind, err = launcher.ParseBinding(o.bindTo); err != nil {
		return spec, err
	}
	if spec.StdinTo, err = parseStdin(o.stdin); err != nil {
		return spec, err
	}
	spec.Oversubscribe, spec.StartTimeout, spec.PeerTimeout = o.oversubscribe, o.startTimeout, o.peerLimit()
	spec.Dir, spec.OutputDir, spec.Tag = o.wdir, o.outputDir, o.tag
	spec.Timeout, spec.KeepGoing = o.timeout, o.keepGoing
	spec.Grace, spec.KillWait = orNone(o.grace), orNone(o.killWait)
	return spec, nil
}

// orNone turns zero into the launcher's value for no time at all.
func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}
