package testwatch

import (
	"os/exec"
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
