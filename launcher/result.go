//go:build linux

package launcher

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/launcher/internal/agent"
)

// Exit codes that are not a rank's own.
const (
	ExitTimeout       = 124
	ExitNotExecutable = agent.ExitNotExecutable
	ExitNotFound      = agent.ExitNotFound
	ExitInternal      = agent.ExitInternal // the launcher itself failed, or lost a host
	exitSignal        = 128                // plus the signal's number
)

// A Result says how a job ended.
type Result struct {
	ExitCode int       // exit code for the launcher
	Failures []Failure // in the order in which they were seen, without ranks that the launcher ended
	TimedOut bool
	Killed   []int // ranks that did not end within KillWait
	Reports  []Report
	Ended    string // why a resource manager ended the job; "": it did not
}

// A Report carries the data that a rank gave to its bootstrap client's Report.
type Report struct {
	Rank    int
	Name    string
	Payload []byte
}

// A Failure is a rank that did not end well.
type Failure struct {
	Rank   int
	Host   string
	Code   int            // the exit code for this failure: 128 + signal if one killed the rank
	Signal syscall.Signal // 0 if none did
	Reason string         // "died of SIGSEGV", "exited with code 7", ...
}

// Summary names the first failure in one line; it is empty without one.
func (r Result) Summary() string {
	if len(r.Failures) == 0 {
		return ""
	}
	f := r.Failures[0]
	what := fmt.Sprintf("rank %d on %s %s", f.Rank, f.Host, f.Reason)
	if len(r.Failures) > 1 {
		what += fmt.Sprintf(" (first of %d failures)", len(r.Failures))
	}
	return what
}

// A StartError reports a program that could not be started.
type StartError = agent.StartError

// describe returns the exit code, signal and description of a process's end.
func describe(status syscall.WaitStatus) (code int, sig syscall.Signal, reason string) {
	if status.Signaled() {
		sig = status.Signal()
		return exitSignal + int(sig), sig, "died of " + unix.SignalName(sig)
	}
	code = status.ExitStatus()
	return code, 0, fmt.Sprintf("exited with code %d", code)
}
