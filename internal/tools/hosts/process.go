package hosts

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// A Process runs in a host. It is a child of this process. The end of the host kills it.
type Process struct {
	Host *Host
	cmd  *exec.Cmd
	done chan struct{}
	err  error // once done is closed
}

// Start starts a process in the host. Its folder is this process's, unless cmd names one.
// cmd's output goes to files or writers, not to pipes.
func (h *Host) Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		cmd.Dir = dir
	}
	if err := h.Do(cmd.Start); err != nil {
		return nil, err
	}
	p := &Process{Host: h, cmd: cmd, done: make(chan struct{})}
	go func() {
		// The kernel removes a host only when the parents of its processes have waited
		// for them.
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Done returns a channel that the end of the process closes.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns the process's error when it has ended, as exec.Cmd.Wait does.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Signal sends a signal to the process.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Run starts a process in the host and waits for it.
func (h *Host) Run(cmd *exec.Cmd) error {
	p, err := h.Start(cmd)
	if err != nil {
		return err
	}
	return p.Wait()
}

// Output runs a program in the host and returns all that it prints.
func (h *Host) Output(name string, args ...string) (string, error) {
	var out strings.Builder
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := h.Run(cmd)
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, out.String())
	}
	return out.String(), err
}
