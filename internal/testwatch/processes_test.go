package testwatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// markOf returns an entry for the environments of a test's processes, but not of those of the same test in another run
// on this machine.
func markOf(t *testing.T) string { return fmt.Sprintf("TESTWATCH_TEST=%s %d", t.Name(), os.Getpid()) }

// run starts a shell with a mark in its environment.
func run(t *testing.T, mark, script string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append(cmd.Environ(), mark)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func TestStartsAndEndsOfProcessesAreSteps(t *testing.T) {
	mark := markOf(t)
	steps := Processes(Marked(mark))
	require.Zero(t, steps())
	cmd := run(t, mark, "exec sleep 1000")
	require.Eventually(t, func() bool { return steps() > 0 }, Patience(), time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Zero(t, steps())
}

func TestProcessThatComputesMakesSteps(t *testing.T) {
	mark := markOf(t)
	run(t, mark, "while :; do :; done")
	steps := Processes(Marked(mark))
	require.Eventually(t, func() bool { return steps() > 0 }, Patience(), time.Millisecond)
	before := steps()
	// The process may get little of a busy machine's time.
	require.Eventually(t, func() bool { return steps() > before }, 20*Patience(), 10*time.Millisecond)
}

// TestShowingEndsStuckProcesses has the process stopped: it goes on for that. SIGQUIT ends a
// program that is not of Go, too.
func TestShowingEndsStuckProcesses(t *testing.T) {
	mark := markOf(t)
	cmd := run(t, mark, "exec sleep 1000")
	require.Eventually(t, func() bool { return len(processes(Marked(mark))) == 1 }, Patience(), time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	for _, cause := range []error{context.Canceled, ErrStuck} {
		ctx, end := context.WithCancelCause(t.Context())
		showing := Showing(ctx, Marked(mark))
		require.NoError(t, showing.Err())
		end(cause)
		<-showing.Done()
		require.ErrorIs(t, context.Cause(showing), cause)
		if errors.Is(cause, ErrStuck) {
			require.Eventually(t, func() bool { return len(processes(Marked(mark))) == 0 }, Patience(), time.Millisecond)
		} else {
			require.Len(t, processes(Marked(mark)), 1)
		}
	}
	require.ErrorContains(t, cmd.Wait(), "signal: quit")
}
