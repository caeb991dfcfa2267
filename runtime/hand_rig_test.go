//go:build linux

package runtime_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// A started process is a rank that a test starts as a user does in a shell.
type started struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	lines chan string // of its output
	out   bytes.Buffer
	done  chan struct{} // closed when it has ended
}

// hand starts processes of one job.
type hand struct {
	t    *testing.T
	ctx  context.Context
	vars []string // of all
}

// newHand returns a job of n processes at an address of host, with a secret in a file.
func newHand(t *testing.T, n int, host string) *hand {
	addr := testwatch.Address(t, host).String()
	file := filepath.Join(t.TempDir(), "job.secret")
	secret := make([]byte, 32)
	rand.Read(secret)
	require.NoError(t, os.WriteFile(file, []byte(hex.EncodeToString(secret)+"\n"), 0o600))
	mark := "GOPGAS_TEST_JOB=" + addr
	return &hand{t, testwatch.Context(t, testwatch.Processes(testwatch.Marked(mark))), []string{
		"GRUN_ADDR=" + addr, fmt.Sprint("GRUN_SIZE=", n), "GRUN_SECRET_FILE=" + file, "GRUN_HEAP=1M", mark}}
}

// start starts a process with vars, which win over those of the job.
func (h *hand) start(program string, vars ...string) *started {
	h.t.Helper()
	return h.startWith(nil, program, vars...)
}

// startWith hands the process a descriptor with the number 3, and closes the test's.
func (h *hand) startWith(file *os.File, program string, vars ...string) *started {
	h.t.Helper()
	exe, err := os.Executable()
	require.NoError(h.t, err)
	p := &started{cmd: exec.Command(exe), lines: make(chan string, 100), done: make(chan struct{})}
	p.cmd.Env = append(append(append(os.Environ(), envMain+"="+program), h.vars...), vars...)
	out, err := p.cmd.StdoutPipe()
	require.NoError(h.t, err)
	p.cmd.Stderr = p.cmd.Stdout
	if file != nil {
		p.cmd.ExtraFiles = []*os.File{file}
		defer file.Close()
	}
	require.NoError(h.t, p.cmd.Start())
	go p.read(out)
	h.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// ranks starts processes with the numbers from first to last.
func (h *hand) ranks(program string, first, last int, vars ...string) (all []*started) {
	for rank := first; rank <= last; rank++ {
		all = append(all, h.start(program, append([]string{fmt.Sprint("GRUN_RANK=", rank)}, vars...)...))
	}
	return all
}

func (p *started) read(out io.Reader) {
	defer close(p.done)
	text := make([]byte, 4096)
	var rest string
	for {
		n, err := out.Read(text)
		p.mu.Lock()
		p.out.Write(text[:n])
		p.mu.Unlock()
		rest += string(text[:n])
		for line, after, ok := strings.Cut(rest, "\n"); ok; line, after, ok = strings.Cut(rest, "\n") {
			select {
			case p.lines <- line:
			default: // the test awaits no line of a long output
			}
			rest = after
		}
		if err != nil {
			_ = p.cmd.Wait()
			return
		}
	}
}

func (p *started) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// await returns when the process has printed a line.
func (h *hand) await(p *started, line string) {
	h.t.Helper()
	for {
		select {
		case got := <-p.lines:
			if got == line {
				return
			}
		case <-p.done:
			h.t.Fatalf("the process ended without %q:\n%s", line, p.text())
		case <-h.ctx.Done():
			h.t.Fatalf("%v: waiting for %q:\n%s", context.Cause(h.ctx), line, p.text())
		}
	}
}

// ends waits for the end of a process and returns its exit code and output.
func (h *hand) ends(p *started) (code int, text string) {
	h.t.Helper()
	select {
	case <-p.done:
	case <-h.ctx.Done():
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // prints its goroutines
		<-p.done
		h.t.Fatalf("%v:\n%s", context.Cause(h.ctx), p.text())
	}
	return p.cmd.ProcessState.ExitCode(), p.text()
}

// endWell fails the test unless all processes end well.
func (h *hand) endWell(all ...*started) {
	h.t.Helper()
	for _, p := range all {
		code, text := h.ends(p)
		require.Zero(h.t, code, text)
	}
}

// fails fails the test unless the process ends with an error that contains all texts.
func (h *hand) fails(p *started, texts ...string) {
	h.t.Helper()
	code, text := h.ends(p)
	require.Equal(h.t, 1, code, text)
	for _, want := range texts {
		require.Contains(h.t, text, want)
	}
}
