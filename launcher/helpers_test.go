//go:build linux

package launcher

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// envBody makes the test binary run one of the bodies instead of the tests.
const envBody = "LAUNCHER_TEST_BODY"

// envMark marks every process that a test has started, directly or not.
const envMark = "LAUNCHER_TEST_MARK"

func TestMain(m *testing.M) {
	GuardianMain()
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		if err := AgentMain(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if name := os.Getenv(envBody); name != "" {
		if body, ok := managedBodies[name]; ok {
			os.Exit(body())
		}
		os.Exit(bodies[name]())
	}
	testwatch.HeedSignals()
	testwatch.Overlap()
	testwatch.Main(m)
}

// buffer is a writer for the output of ranks, which come from two pipes.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *buffer) lines() []string { return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") }

// outcome holds the result of a job.
type outcome struct {
	Result
	err            error
	stdout, stderr *buffer
}

// run runs a job under a watchdog and checks that no process of it remains.
func run(t *testing.T, spec Spec) outcome {
	t.Helper()
	o, mark := runMarked(t, spec)
	require.Empty(t, marked(mark), "processes left behind")
	return o
}

// runMarked runs a job under a watchdog, with a mark in the environment of its processes.
func runMarked(t *testing.T, spec Spec) (outcome, string) {
	t.Helper()
	mark := envMark + "=" + uuid.NewString()
	ctx, cancel := testwatch.With(context.Background(), testwatch.Processes(testwatch.Marked(mark)))
	defer cancel()
	o := outcome{stdout: &buffer{}, stderr: &buffer{}}
	if spec.Stdout == nil {
		spec.Stdout = o.stdout
	}
	if spec.Stderr == nil {
		spec.Stderr = o.stderr
	}
	spec.Env = append(spec.Env, mark)
	spec.Guardian = true
	t.Cleanup(func() { killMarked(mark) })
	o.Result, o.err = Run(ctx, spec)
	require.NoError(t, ctx.Err())
	return o, mark
}

// marked lists the processes with an entry in their environment.
func marked(entry string) (list []string) {
	dirs, _ := os.ReadDir("/proc")
	for _, dir := range dirs {
		env, err := os.ReadFile("/proc/" + dir.Name() + "/environ")
		if err == nil && bytes.Contains(append([]byte{0}, env...), append([]byte{0}, entry+"\x00"...)) {
			cmdline, _ := os.ReadFile("/proc/" + dir.Name() + "/cmdline")
			list = append(list, dir.Name()+" "+string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))
		}
	}
	return list
}

// killMarked cleans up after a test that has failed.
func killMarked(entry string) {
	for _, line := range marked(entry) {
		if pid, err := strconv.Atoi(strings.Fields(line)[0]); err == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// sh returns n ranks of a shell script.
func sh(n int, script string) []Program {
	return []Program{{Path: "sh", Args: []string{"-c", script}, N: n}}
}

// ranks returns n ranks of one of the bodies. The race detector would have each
// sleep for a second before it exits.
func ranks(n int, body string) Program {
	return Program{Path: "/proc/self/exe", N: n, Env: []string{envBody + "=" + body, "GORACE=atexit_sleep_ms=0"}}
}
