package launcher

import (
	"fmt"
	"os/exec"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// A spawner forks from one thread. Pdeathsig kills a child when the thread that
// forked it ends. A Go thread may end at any time, unless a goroutine is locked
// to it.
type spawner struct{ work chan func() }

func newSpawner() *spawner {
	s := &spawner{work: make(chan func())}
	go func() {
		goruntime.LockOSThread() // for good: the thread ends with the goroutine
		for f := range s.work {
			f()
		}
	}()
	return s
}

// start starts cmd, confined to cpus unless that is nil.
func (s *spawner) start(cmd *exec.Cmd, cpus *unix.CPUSet) error {
	done := make(chan error)
	s.work <- func() { done <- startOn(cmd, cpus) }
	return awaitFork(done)
}

// stop ends the thread. The children must have ended.
func (s *spawner) stop() { close(s.work) }

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
