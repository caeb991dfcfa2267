//go:build linux

package agent

import (
	"bufio"
	"fmt"
	"os"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// drainWait bounds how long the end of a job waits for bytes that a process outside
// the job may still be writing.
const drainWait = time.Second

// errorPipe takes the final errors of the ranks of this host.
type errorPipe struct {
	r, w *os.File
	size int
}

// newErrorPipe makes the pipe into which ranks write their final errors, of size bytes at most.
func newErrorPipe(size int) (*errorPipe, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe for errors of the ranks: %w", err)
	}
	return &errorPipe{r: r, w: w, size: size}, nil
}

// path returns the path at which ranks open the pipe.
func (p *errorPipe) path() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), p.w.Fd())
}

// read posts the errors that ranks send, and a last message once no rank can send one
// any more.
func (p *errorPipe) read(post func(wire.Message)) {
	lines := bufio.NewReaderSize(p.r, bootstrap.MaxFinalError)
	for {
		line, _, err := lines.ReadLine()
		if err != nil {
			break
		}
		if e, err := bootstrap.ParseFinalError(line, p.size); err == nil {
			post(wire.Message{Kind: wire.KindFinalError, Rank: e.Rank, Text: e.Text})
		}
	}
	post(wire.Message{Kind: wire.KindErrorsRead})
}

// end has read return once it has read everything. The caller calls it after the
// ranks have ended.
func (p *errorPipe) end() {
	p.w.Close()
	p.r.SetReadDeadline(time.Now().Add(drainWait)) //nolint:errcheck // pipes have deadlines
}

// close ends both ends of the pipe in this process.
func (p *errorPipe) close() {
	p.w.Close()
	p.r.Close()
}
