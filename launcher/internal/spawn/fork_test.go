//go:build linux

package spawn

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// envWait makes the test binary wait for input instead of running the tests.
const envWait = "SPAWN_TEST_WAIT"

func TestMain(m *testing.M) {
	if os.Getenv(envWait) != "" {
		fmt.Print(".")
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	testwatch.HeedSignals()
	testwatch.Main(m)
}

// TestAChildThatIsStoppedBeforeItsProgramGoesOn has a child with this process's
// command line, as a child has between fork and exec, and stops it.
func TestAChildThatIsStoppedBeforeItsProgramGoesOn(t *testing.T) {
	child := &exec.Cmd{Path: "/proc/self/exe", Args: os.Args, Env: append(os.Environ(), envWait+"=1")}
	input, err := child.StdinPipe()
	require.NoError(t, err)
	said, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	_, err = said.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, child.Process.Signal(syscall.SIGSTOP))
	ctx, cancel := testwatch.With(t.Context())
	defer cancel()
	for !isStopped(t, child.Process.Pid) {
		require.NoError(t, ctx.Err())
	}
	ended := make(chan error, 1)
	go func() {
		input.Close()
		ended <- child.Wait()
	}()
	require.NoError(t, Await(ended))
}

func isStopped(t *testing.T, pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	return strings.HasPrefix(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " T")
}
