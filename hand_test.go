package gopgas_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// TestCommandsOfTheReadmeStartAJobByHand runs the lines of "Joining by hand", each in a
// shell, at a free port.
func TestCommandsOfTheReadmeStartAJobByHand(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector does not look into the processes")
	}
	readme := read(t, "README.md")
	secret := regexp.MustCompile(`(?m)^    (\(umask 077;.*job\.secret\))`).FindStringSubmatch(readme)
	require.NotNil(t, secret)
	block := regexp.MustCompile(`(?m)^    (GRUN_ADDR=localhost:7000 .*\./hello)$`).FindAllStringSubmatch(readme, -1)
	require.Len(t, block, 3)
	dir := t.TempDir()
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir+"/hello", "./examples/hello")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as without the race detector
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	ctx := testwatch.Context(t, testwatch.Processes(testwatch.Marked("PWD="+dir))) // the build is no step
	shell := func(line string) (string, error) {
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PWD="+dir, "GRUN_HEAP=1M")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	text, err := shell(secret[1])
	require.NoError(t, err, text)
	addr := fmt.Sprintf("GRUN_ADDR=localhost:%d ", testwatch.Address(t, "127.0.0.1").Port())
	outs, errs := make([]string, len(block)), make([]error, len(block))
	var shells sync.WaitGroup
	for i, line := range block {
		shells.Go(func() { outs[i], errs[i] = shell(strings.Replace(line[1], "GRUN_ADDR=localhost:7000 ", addr, 1)) })
	}
	shells.Wait()
	for i := range block {
		require.NoError(t, errs[i], outs[i])
		require.Equal(t, fmt.Sprintf("rank %d of 3: rank %d was here\n", i, (i+2)%3), outs[i])
	}
}
