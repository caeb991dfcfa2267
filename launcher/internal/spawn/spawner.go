//go:build linux

// Package spawn starts processes that die with this one.
package spawn

import (
	"fmt"
	"os/exec"
	goruntime "runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/mutant"
)

// A Spawner forks from one thread. Pdeathsig kills a child when the thread that
// forked it ends. A Go thread may end at any time, unless a goroutine is locked
// to it.
type Spawner struct{ work chan func() }

// New starts the thread.
func New() *Spawner {
	s := &Spawner{work: make(chan func())}
	go func() {
		goruntime.LockOSThread() // for good: the thread ends with the goroutine
		for f := range s.work {
			f()
		}
	}()
	return s
}

// A Share is a process's part of its host.
type Share struct {
	Cores *unix.CPUSet // on which the process runs; nil: those of this process
	// Slack is the longest time by which the kernel may fire timers of the process late, so
	// that it wakes for several at once; 0: that of this process.
	Slack time.Duration
}

// Start starts cmd within its share of the host. The process leads a process group and dies
// with this process.
func (s *Spawner) Start(cmd *exec.Cmd, share Share) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	done := make(chan error)
	s.work <- func() { done <- startOn(cmd, share) }
	mutant.Hesitate(mutant.Call)
	if err := Await(done); err != nil {
		return nil, err
	}
	return &Process{cmd: cmd}, nil
}

// Stop ends the thread. The kernel kills the children that are left.
func (s *Spawner) Stop() { close(s.work) }

// startOn binds the calling thread and sets its slack while it forks: a child inherits both.
// Go reads the mask before main.
func startOn(cmd *exec.Cmd, share Share) error {
	if share.Slack > 0 {
		setSlack(share.Slack)
		defer setSlack(0)
	}
	if share.Cores == nil {
		return cmd.Start()
	}
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read affinity mask: %w", err)
	}
	if err := unix.SchedSetaffinity(0, share.Cores); err != nil {
		return fmt.Errorf("bind to cores: %w", err)
	}
	err := cmd.Start()
	if restoreErr := unix.SchedSetaffinity(0, &before); err == nil && restoreErr != nil {
		return fmt.Errorf("restore affinity mask: %w", restoreErr)
	}
	return err
}

// setSlack sets the timer slack of the calling thread; 0 restores the slack with which it began.
// Under a kernel without slack, such as an emulated one, the child wakes more often.
func setSlack(slack time.Duration) {
	unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) //nolint:errcheck // see above
}
