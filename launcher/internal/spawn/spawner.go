// Package spawn starts processes that die with this one.
package spawn

import (
	"fmt"
	"os/exec"
	goruntime "runtime"
	"syscall"

	"golang.org/x/sys/unix"
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

// Start starts cmd, confined to cpus unless that is nil. The process leads a process
// group and dies with this process.
func (s *Spawner) Start(cmd *exec.Cmd, cpus *unix.CPUSet) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	done := make(chan error)
	s.work <- func() { done <- startOn(cmd, cpus) }
	if err := Await(done); err != nil {
		return nil, err
	}
	return &Process{cmd: cmd}, nil
}

// Stop ends the thread. The kernel kills the children that are left.
func (s *Spawner) Stop() { close(s.work) }

// startOn binds the calling thread while it forks: a child inherits the mask, and
// Go reads it before main.
func startOn(cmd *exec.Cmd, cpus *unix.CPUSet) error {
	if cpus == nil {
		return cmd.Start()
	}
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read affinity mask: %w", err)
	}
	if err := unix.SchedSetaffinity(0, cpus); err != nil {
		return fmt.Errorf("bind to cores: %w", err)
	}
	err := cmd.Start()
	if restoreErr := unix.SchedSetaffinity(0, &before); err == nil && restoreErr != nil {
		return fmt.Errorf("restore affinity mask: %w", restoreErr)
	}
	return err
}
