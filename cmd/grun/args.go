//go:build linux

package main

import (
	"strings"

	"github.com/spf13/pflag"
)

// split cuts the command line at each ":" into the programs of an MPMD job.
func split(args []string) [][]string {
	segments := [][]string{{}}
	for _, arg := range args {
		last := len(segments) - 1
		if arg == ":" {
			segments = append(segments, []string{})
		} else {
			segments[last] = append(segments[last], arg)
		}
	}
	return segments
}

// expand turns MPI's long flags with one dash (-np 4, -bind-to core) into flags with two. It stops
// at the first argument that is no flag.
func expand(flags *pflag.FlagSet, args []string) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" || arg == "-" || !strings.HasPrefix(arg, "-") {
			return append(out, args[i:]...)
		}
		name, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		flag := flags.Lookup(name)
		if flag != nil && len(name) > 1 && !strings.HasPrefix(arg, "--") {
			arg = "-" + arg
		}
		if flag == nil && len(name) == 1 {
			flag = flags.ShorthandLookup(name)
		}
		out = append(out, arg)
		if flag != nil && flag.NoOptDefVal == "" && !hasValue && i+1 < len(args) {
			i++
			out = append(out, args[i])
		}
	}
	return out
}
