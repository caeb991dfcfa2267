//go:build linux

// Command grun starts the ranks of a job and sees to their end.
//
//	grun -n 4 ./examples/hello
//
// This package holds the flags; package launcher does the work. grun -h explains
// the flags.
package main

import (
	"os"

	"github.com/gopgas/gopgas/launcher"
)

func main() {
	launcher.GuardianMain()
	os.Exit(run(os.Args[1:]))
}

// run returns the exit code.
func run(args []string) int {
	command := newCommand()
	segments := split(args)
	command.root.SetArgs(expand(command.root.Flags(), segments[0]))
	command.more = segments[1:]
	if err := command.root.Execute(); err != nil {
		return complain(err)
	}
	return command.code
}
