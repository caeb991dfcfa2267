//go:build linux

// Roce examines RoCE v2, and shows why its senders must not begin again.
//
//	go run ./internal/tools/roce livelock -h
//	go run ./internal/tools/roce sniff -h
//
// Livelock compares three ways to recover from lost packets in a simulation. Sniff
// decodes the packets of a network interface or of a file, and checks their invariant CRCs.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// errSuspect ends a command that ran and found something wrong.
var errSuspect = errors.New("")

func main() {
	switch err := run(os.Args[1:], os.Stdout, os.Stderr); {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errSuspect):
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "roce:", err)
		os.Exit(2)
	}
}

const usage = `Commands for RDMA over Ethernet (RoCE v2):

	roce livelock    three recoveries from lost packets, in a simulation
	roce sniff       decode packets of an interface or of a pcap file, and check their ICRCs

Each explains itself with -h.
`

// run runs a command. Help goes to help, results go to out.
func run(args []string, out, help io.Writer) error {
	commands := map[string]func(args []string, out, help io.Writer) error{"livelock": livelock, "sniff": sniff}
	if len(args) > 0 && commands[args[0]] != nil {
		return commands[args[0]](args[1:], out, help)
	}
	fmt.Fprint(help, usage)
	if len(args) > 0 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help") {
		return flag.ErrHelp
	}
	return fmt.Errorf("no command %q", args)
}

// flags returns the flags of a command, whose help begins with text.
func flags(name, text string, help io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(help)
	f.Usage = func() {
		fmt.Fprint(help, text)
		f.PrintDefaults()
	}
	return f
}
