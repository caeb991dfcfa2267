//go:build linux

package shm_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// roleEnv names the role of a copy of the test binary in a test of two processes.
const roleEnv = "GOPGAS_SHM_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(runRole(role))
	}
	before := memfds()
	code := m.Run()
	code = testwatch.Judge(code)
	if after := memfds(); after != before && code == 0 {
		fmt.Fprintf(os.Stderr, "%d memfds mapped or open before the tests, %d after\n", before, after)
		code = 1
	}
	os.Exit(code)
}

// memfds counts the memfds that are mapped or open.
func memfds() int {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		panic(err)
	}
	n := strings.Count(string(maps), "/memfd:")
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "/memfd:") {
			n++
		}
	}
	return n
}

// greeting is the message that the two processes exchange through OS pipes.
type greeting struct {
	Address []byte
	Memory  driver.RemoteAddr
}

// rank is a side that has a shared bell in its arena, as ranks have.
type rank struct {
	*side
	bell *wait.Bell
	peer driver.RemoteAddr // start of the peer's arena
	met  []byte            // the peer's address
}

// bellAt is the offset of a rank's bell in its arena.
const bellAt = 0

func newRank(t testing.TB, events func(driver.AsyncEvent)) *rank {
	t.Helper()
	r := &rank{}
	r.side = newSide(t, sideConfig{arena: 4 << 20, shared: true, opts: driver.Options{OnEvent: events}})
	r.bell = r.side.bell
	return r
}

// meet exchanges greetings and connects.
func (r *rank) meet(in *bufio.Reader, out io.Writer) {
	r.t.Helper()
	require.NoError(r.t, json.NewEncoder(out).Encode(greeting{r.qp.Address(), r.at(0)}))
	line, err := in.ReadBytes('\n')
	require.NoError(r.t, err)
	var peer greeting
	require.NoError(r.t, json.Unmarshal(line, &peer))
	r.peer, r.met = peer.Memory, peer.Address
	r.connect(peer.Address)
}

// child is a process that runs a role.
type child struct {
	cmd *exec.Cmd
	in  *bufio.Reader
	out io.WriteCloser
}

func startChild(t *testing.T, role string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &child{cmd: cmd, in: bufio.NewReader(stdout), out: stdin}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // most have ended by then
		_ = c.cmd.Wait()
	})
	return c
}

// ended waits for the child to exit with code 0.
func (c *child) ended(t *testing.T) {
	t.Helper()
	require.NoError(t, c.out.Close())
	rest, _ := io.ReadAll(c.in)
	require.NoError(t, c.cmd.Wait(), "the other process failed: %s", rest)
}

// runRole runs a role and returns the exit code: require fails by Goexit.
func runRole(role string) int {
	t := &roleT{done: make(chan int, 1)}
	go func() {
		defer func() { t.done <- t.code }()
		t.code = 1
		roles[role](t, bufio.NewReader(os.Stdin), os.Stdout)
		for _, f := range t.cleanups {
			defer f()
		}
		if !t.failed {
			t.code = 0
		}
	}()
	return <-t.done
}

// roleT has the methods of testing.TB that the rig uses, for a process that is
// no test.
type roleT struct {
	testing.TB
	done     chan int
	code     int
	failed   bool
	cleanups []func()
}

func (t *roleT) Helper()          {}
func (t *roleT) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *roleT) Errorf(format string, args ...any) {
	t.failed = true
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
func (t *roleT) FailNow() { os.Exit(1) }
