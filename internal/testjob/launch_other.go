//go:build !linux

package testjob

import (
	"syscall"
	"testing"
)

// An Outcome has no values here.
type Outcome struct {
	ExitCode int
	Failures []Failure
	Output   string
}

// A Failure has no values here.
type Failure struct {
	Rank   int
	Signal syscall.Signal
	Reason string
}

// Summary returns no summary.
func (Outcome) Summary() string { return "" }

// Run skips the test: ranks are processes on Linux only.
func (Job) Run(t testing.TB, _ string) {
	t.Helper()
	t.Skip("a job of processes needs Linux")
}

// Try skips the test, as Run does.
func (j Job) Try(t testing.TB, body string) Outcome {
	t.Helper()
	j.Run(t, body)
	return Outcome{}
}

// guardianMain returns: no launcher starts guardians here.
func guardianMain() {}
