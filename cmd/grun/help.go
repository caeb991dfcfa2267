//go:build linux

package main

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

const long = `grun starts N processes of PROG, gives each its rank, and sees to their end. PROG is
an executable, or the directory or file of a Go program, which grun builds first.
Flags for grun stand before PROG; arguments after PROG belong to the program.

The ranks run on this host, or on those of -H or --hostfile, which ssh must reach
without a password, or on the nodes of the Slurm allocation in which grun runs. There
each task is a slot, and srun takes ssh's place. Without -n each slot has a rank. grun copies itself to the
hosts. They have PROG and the working directory at the same paths, or get PROG by
--stage. The variables GRUN_*, those of Go's runtime and -x go there too.

PROG may be a program of MPICH: grun is a process manager with PMI-1 and PMI-2.

When a rank fails, grun tells the other ranks at once. They get --grace to end by
themselves, then SIGTERM, then SIGKILL; one line names the first rank and its
failure. grun passes SIGINT and SIGTERM on, and kills ranks that still run
--kill-wait later, or at the second one. Ctrl-Z stops the ranks with grun, fg or
bg continues them, and --timeout does not count the time between. Nothing is left
running, even if grun itself is killed.

Exit codes: the first failing rank's own; 128 + the signal that killed it;
124 --timeout or --start-timeout for ranks; 126 PROG cannot be run; 127 PROG not
found; 143 Slurm ended the job; 70 grun failed, or lost a host.`

const examples = `  grun -n 4 ./examples/hello               four ranks of a package
  grun -n 4 --tag-output ./prog            every line names its rank
  grun -n 2 --provider tcp --stats ./prog  over TCP, with a table at the end
  grun -n 2 -x GOGC=off ./prog             with an environment variable
  grun -n 1 ./server : -n 8 ./worker       several programs in one job
  grun -H a:2,b:2 ./examples/hello         two ranks on each of two hosts
  grun --hostfile hosts --stage ./prog     a rank for each slot of a file
  salloc -N2 -n6 grun ./prog               six ranks on two nodes of Slurm
  grun -np 4 -bind-to numa ./prog          mpirun's spelling works too
  grun doctor                              what this machine can do, and how to mend it
  grun tune                                which collective algorithms are best on it`

// newVersion makes the command version.
func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print grun's version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "grun %s %s %s/%s\n", version(), goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
		},
	}
}

// version is the module's version, or the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
