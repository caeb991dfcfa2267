//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/launcher"
	"github.com/gopgas/gopgas/launcher/hosts"
	"github.com/spf13/pflag"
)

// launch runs the job and leaves its exit code in c.code.
func (c *command) launch(args []string) error {
	spec, err := c.spec()
	if err != nil {
		return err
	}
	signals, stop := catchSignals()
	defer stop()
	programs, err := c.programs(args, spec.Hosts)
	if err != nil {
		return err
	}
	builds, err := buildAll(programs, signals)
	if err != nil {
		return err
	}
	spec.Programs, spec.Signals, spec.Started = programs, signals, builds.release
	spec.Stdin, spec.Stdout, spec.Stderr = os.Stdin, os.Stdout, os.Stderr
	spec.Guardian = true
	result, err := launcher.Run(context.Background(), spec)
	c.code = result.ExitCode
	if c.stats || wantsStats(programs) {
		printStats(os.Stderr, result.Reports)
	}
	return c.conclude(result, err)
}

// conclude returns the reason if the job did not end well.
func (c *command) conclude(result launcher.Result, err error) error {
	if err != nil {
		return &codedError{result.ExitCode, err}
	}
	if result.TimedOut {
		fmt.Fprintf(os.Stderr, "grun: timed out after %v; the ranks were ended\n", c.timeout)
	}
	if len(result.Killed) > 0 {
		fmt.Fprintf(os.Stderr, "grun: %s did not end when asked to, and had to be killed\n", bootstrap.Ranks(result.Killed))
	}
	if result.Ended != "" {
		fmt.Fprintln(os.Stderr, "grun:", result.Ended)
	}
	if summary := result.Summary(); summary != "" {
		fmt.Fprintln(os.Stderr, "grun:", summary)
	}
	return nil
}

// programs reads the first program and those after a ":".
func (c *command) programs(args []string, list []hosts.Host) ([]launcher.Program, error) {
	if list != nil && len(c.more) == 0 && !c.root.Flags().Changed("np") {
		c.first.n = hosts.Slots(list)
	}
	first, err := c.first.program(args)
	if err != nil {
		return nil, err
	}
	programs := []launcher.Program{first}
	for _, segment := range c.more {
		var p program
		flags := pflag.NewFlagSet("grun", pflag.ContinueOnError)
		flags.SetInterspersed(false)
		flags.Usage = func() {}
		p.define(flags)
		if err := flags.Parse(expand(flags, segment)); err != nil {
			return nil, fmt.Errorf("%w; flags of the whole job stand before the first program", err)
		}
		next, err := p.program(flags.Args())
		if err != nil {
			return nil, err
		}
		programs = append(programs, next)
	}
	if err := c.checkVars(programs); err != nil {
		return nil, err
	}
	if err := c.addTables(programs, list); err != nil {
		return nil, err
	}
	for i := range programs {
		programs[i].Stage = c.stage || isSource(programs[i].Path)
	}
	if list != nil {
		return programs, nil // the slots bound the ranks
	}
	return programs, c.fits(programs)
}

// maxRanksPerCore bounds the ranks that grun starts without --oversubscribe. Some
// hundred ranks on two cores are slow but work; some ten thousand stall the
// machine.
const maxRanksPerCore = 256

// fits refuses a number of ranks that looks like a typing error.
func (c *command) fits(programs []launcher.Program) error {
	ranks, cores := 0, goruntime.NumCPU()
	for _, p := range programs {
		ranks += p.N
	}
	if ranks <= maxRanksPerCore*cores || c.oversubscribe {
		return nil
	}
	return fmt.Errorf("%d ranks on %d cores would stall this machine; ask for at most %d, or give --oversubscribe",
		ranks, cores, maxRanksPerCore*cores)
}

// program returns what the flags and arguments of one program say. A variable without a value gets
// that of grun's environment.
func (p *program) program(args []string) (launcher.Program, error) {
	if len(args) == 0 {
		return launcher.Program{}, errors.New("no program; write: grun -n 4 PROG [args], and see grun -h")
	}
	if p.n < 1 {
		return launcher.Program{}, fmt.Errorf("-n %d: want at least one rank", p.n)
	}
	out := launcher.Program{Path: args[0], Args: args[1:], N: p.n}
	for _, v := range p.vars {
		if !strings.Contains(v, "=") {
			value, ok := os.LookupEnv(v)
			if !ok {
				continue // as mpirun: a variable that is not set here is not set there
			}
			v += "=" + value
		}
		out.Env = append(out.Env, v)
	}
	return out, nil
}

// parseStdin reads a rank, all or none.
func parseStdin(text string) (launcher.StdinTarget, error) {
	switch text {
	case "all":
		return launcher.StdinAll, nil
	case "none":
		return launcher.StdinNone, nil
	}
	rank, err := strconv.Atoi(text)
	if err != nil || rank < 0 {
		return 0, fmt.Errorf("--stdin %q: want a rank, all or none", text)
	}
	return launcher.StdinTarget(rank), nil
}
