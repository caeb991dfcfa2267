package testwatch

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
	const mark = "TESTWATCH_TEST=comes and goes"
	steps := Processes(Marked(mark))
	require.Zero(t, steps())
	cmd := run(t, mark, "exec sleep 1000")
	require.Eventually(t, func() bool { return steps() > 0 }, Patience(), time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Zero(t, steps())
}

func TestProcessThatComputesMakesSteps(t *testing.T) {
	const mark = "TESTWATCH_TEST=computes"
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
	const mark = "TESTWATCH_TEST=shows and ends"
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
		require.Equal(t, errors.Is(cause, ErrStuck), len(processes(Marked(mark))) == 0)
	}
	require.ErrorContains(t, cmd.Wait(), "signal: quit")
}
