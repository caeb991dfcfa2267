//go:build linux

package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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

// Running lists the command lines of the processes in the host, by their numbers there. It
// leaves out the first process, and zombies.
func (h *Host) Running() (commands map[int]string, err error) {
	commands = map[int]string{}
	err = h.Do(func() error {
		dirs, err := os.ReadDir("/proc")
		for _, dir := range dirs {
			number, notProcess := strconv.Atoi(dir.Name())
			line, gone := os.ReadFile("/proc/" + dir.Name() + "/cmdline")
			if notProcess == nil && gone == nil && number > 1 && len(line) > 0 {
				commands[number] = strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
		return err
	})
	return commands, err
}

// Files lists the files below folders of the host. Files and folders may vanish meanwhile.
func (h *Host) Files(folders ...string) (files []string, err error) {
	list := func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	}
	err = h.Do(func() error {
		for _, folder := range folders {
			if err := filepath.WalkDir(folder, list); err != nil {
				return err
			}
		}
		return nil
	})
	return files, err
}

// Kill sends a signal to a process by its number in the host.
func (h *Host) Kill(number int, sig syscall.Signal) error {
	_, err := h.Output("sh", "-c", fmt.Sprintf("kill -%d %d", sig, number))
	return err
}

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
