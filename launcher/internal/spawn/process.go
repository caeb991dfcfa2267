//go:build linux

package spawn

import (
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Process is a child in a process group of its own.
type Process struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	gone bool // reaped: the kernel may reuse its number
}

// Wait returns the exit status of the process. It reaps the process under the
// lock. Until then the kernel does not reuse the number, so Signal hits no other
// process.
func (p *Process) Wait() (syscall.WaitStatus, error) {
	p.await()
	return p.reap()
}

// WaitAll waits for the process as Wait does, and then kills the rest of its process group.
func (p *Process) WaitAll() (syscall.WaitStatus, error) {
	p.await()
	p.Signal(syscall.SIGKILL)
	return p.reap()
}

// await returns when the process has ended.
func (p *Process) await() {
	for {
		err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// reap waits for the process under the mutex: no signal goes to a number that the system has given
// to another process.
func (p *Process) reap() (syscall.WaitStatus, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	state, err := p.cmd.Process.Wait()
	if err != nil {
		return 0, err
	}
	return state.Sys().(syscall.WaitStatus), nil
}

// Signal reaches the process and its children in the same process group.
func (p *Process) Signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		unix.Kill(-p.cmd.Process.Pid, sig) //nolint:errcheck // gone is fine
	}
}
