package launcher

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

// TestAChildThatIsStoppedBeforeItsProgramGoesOn has a child with this process's
// command line, as a child has between fork and exec, and stops it.
func TestAChildThatIsStoppedBeforeItsProgramGoesOn(t *testing.T) {
	child := &exec.Cmd{Path: "/proc/self/exe", Args: os.Args, Env: append(os.Environ(), envBody+"=wait for input")}
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
	require.NoError(t, awaitFork(ended))
}

func isStopped(t *testing.T, pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	return strings.HasPrefix(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " T")
}
