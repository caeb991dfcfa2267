//go:build linux

// Package tunnel runs a command, such as ssh, whose standard input and output are a
// stream of bytes to a program on another host.
package tunnel

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/gopgas/gopgas/launcher/internal/spawn"
)

const (
	// maxSaid bounds the text that is kept of what the command prints on stderr.
	maxSaid = 64 << 10 // room for the traceback of an agent that crashed
	// saidWait is the time after the end of the command by which its stderr ends. A
	// process that the command left behind may hold it open.
	saidWait = 200 * time.Millisecond
	// endWait is the time between the end of the stream and the command's.
	endWait = 2 * time.Second
)

// A Tunnel is a running command.
type Tunnel struct {
	process *spawn.Process
	in      *os.File // its standard input
	out     *os.File // its standard output
	said    *os.File // its standard error
	ended   chan struct{}
	end     End

	closing sync.Once
}

// An End says how a command ended.
type End struct {
	Status syscall.WaitStatus
	Said   string // the last part of its standard error
}

// Start starts a command in a process group of its own: the terminal's signals do not
// reach it. It dies with this process.
func Start(s *spawn.Spawner, command []string) (*Tunnel, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, err
	}
	var near, far [3]*os.File
	for i := range near {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(near[:i], far[:i])
			return nil, fmt.Errorf("pipe to %s: %w", command[0], err)
		}
		near[i], far[i] = r, w
		if i == 0 {
			near[i], far[i] = w, r
		}
	}
	cmd := &exec.Cmd{Path: path, Args: command, Stdin: far[0], Stdout: far[1], Stderr: far[2]}
	process, err := s.Start(cmd, spawn.Share{})
	closeAll(far[:])
	if err != nil {
		closeAll(near[:])
		return nil, err
	}
	t := &Tunnel{process: process, in: near[0], out: near[1], said: near[2], ended: make(chan struct{})}
	go t.wait()
	return t, nil
}

// closeAll closes all files of some lists.
func closeAll(lists ...[]*os.File) {
	for _, list := range lists {
		for _, f := range list {
			f.Close()
		}
	}
}

// wait reaps the command, ends its children, which may hold the stream open, and keeps the end of its standard error.
func (t *Tunnel) wait() {
	said := make(chan string, 1)
	go func() { said <- tail(t.said) }()
	t.end.Status, _ = t.process.WaitAll()            // it is a child of this process
	t.said.SetReadDeadline(time.Now().Add(saidWait)) //nolint:errcheck // pipes have deadlines
	t.end.Said = <-said
	t.said.Close()
	close(t.ended)
}

// tail returns the last part of r.
func tail(r io.Reader) string {
	var kept []byte
	chunk := make([]byte, 4<<10)
	for {
		n, err := r.Read(chunk)
		kept = append(kept, chunk[:n]...)
		kept = kept[max(0, len(kept)-maxSaid):]
		if err != nil {
			return string(kept)
		}
	}
}

// Read reads the command's standard output.
func (t *Tunnel) Read(b []byte) (int, error) { return t.out.Read(b) }

// Write writes the command's standard input.
func (t *Tunnel) Write(b []byte) (int, error) { return t.in.Write(b) }

// CloseWrite lets the command read end-of-file.
func (t *Tunnel) CloseWrite() error { return t.in.Close() }

// Close ends both directions. The command gets some time to end by itself; then it is
// killed, with its children.
func (t *Tunnel) Close() error {
	t.closing.Do(func() {
		t.in.Close()
		t.out.Close()
		go func() {
			select {
			case <-t.ended:
			case <-time.After(endWait):
				t.Kill()
			}
		}()
	})
	return nil
}

// Kill kills the command and its children.
func (t *Tunnel) Kill() { t.process.Signal(syscall.SIGKILL) }

// Wait waits for the command's end.
func (t *Tunnel) Wait() End {
	<-t.ended
	return t.end
}
