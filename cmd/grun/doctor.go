//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// verdict is the result of a check.
type verdict uint8

const (
	ok verdict = iota
	warn
	fail
)

func (v verdict) String() string { return [...]string{"OK", "WARN", "FAIL"}[v] }

// A finding is one line of the doctor's report, with its remedy.
type finding struct {
	verdict verdict
	text    string
	mend    string
}

// A check examines one thing that gopgas needs or likes.
type check struct {
	name string
	look func() finding
}

// checks lists what doctor looks at, in the order in which it prints.
func checks() []check {
	addressSpace, fileSize, memlock, processes := limits()
	return []check{
		{"memory", checkMemory},
		{"sealed memfd", checkSeals},
		{"peer memory", checkPeer},
		{"address space", checkLimit(addressSpace)},
		{"file size", checkLimit(fileSize)},
		{"locked memory", checkLimit(memlock)},
		{"descriptors", checkDescriptors},
		{"processes", checkLimit(processes)},
		{"pidfd", checkPidfd},
		{"cores", checkCores},
		{"loopback tcp", checkLoopback},
		{"clock source", checkClock},
		{"rdma devices", checkRDMA},
	}
}

// newDoctor makes the command doctor. With a hidden flag it is the peer whose memory checkPeer
// maps, until its input ends.
func newDoctor(c *command) *cobra.Command {
	asPeer := false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what this machine can do, and say how to mend it",
		Long:  "Each line is OK, WARN (works, but not as well as it could) or FAIL (jobs will\nnot run). The exit code is 1 if anything failed.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asPeer {
				_, err := io.Copy(io.Discard, os.Stdin)
				return err
			}
			if examine(cmd.OutOrStdout(), checks()) == fail {
				return &codedError{1, errors.New("this machine needs mending before jobs can run")}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asPeer, peerFlag, false, "")
	if err := cmd.Flags().MarkHidden(peerFlag); err != nil {
		panic(err) // defined one line above
	}
	return cmd
}

// examine prints a line for each check and returns the worst verdict.
func examine(w io.Writer, list []check) verdict {
	worst := ok
	for _, c := range list {
		f := c.look()
		worst = max(worst, f.verdict)
		fmt.Fprintf(w, "%-4s  %-14s %s\n", f.verdict, c.name, f.text)
		if f.mend != "" && f.verdict != ok {
			fmt.Fprintf(w, "      %-14s -> %s\n", "", f.mend)
		}
	}
	return worst
}

// failing returns the finding of a check that could not run.
func failing(what string, err error, mend string) finding {
	return finding{fail, fmt.Sprintf("%s: %v", what, err), mend}
}

// bytesText formats a size for people.
func bytesText(n uint64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}
