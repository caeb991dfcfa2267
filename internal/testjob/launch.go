//go:build linux

package testjob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/launcher"
)

// An Outcome says how a job of processes ended, and holds the output of its
// ranks.
type Outcome struct {
	launcher.Result
	Output string
}

// Run runs the named body in processes. It fails the test, with their output,
// unless all of them end well.
func (j Job) Run(t testing.TB, body string) {
	t.Helper()
	out := j.Try(t, body)
	require.Zero(t, out.ExitCode, "%s\n%s", out.Summary(), out.Output)
}

// grace lets ranks join, and the survivors of a death come to their end, on a machine however slow. The
// watchdog ends ranks that make no step.
const grace = time.Hour

// Try is Run for jobs that do not end well. Jobs of processes run one at a
// time on a host, whichever packages' tests start them, but for those that are Idle.
func (j Job) Try(t testing.TB, body string) Outcome {
	t.Helper()
	if !j.Idle {
		defer lock(t)()
	}
	told := newStepsFile(t, j.Ranks)
	exe, err := os.Executable()
	require.NoError(t, err)
	out := &buffer{}
	env := append([]string{envBody + "=" + body, envSteps + "=" + told.file.Name(), bootstrap.EnvProvider + "=" + j.Provider,
		bootstrap.EnvHeap + "=" + strconv.Itoa(heap), bootstrap.EnvStartTimeout + "=" + grace.String()}, j.Env...)
	if j.Queued {
		env = append(env, bootstrap.EnvFMAMax+"=0")
	}
	if j.Atomics != "" {
		env = append(env, bootstrap.EnvAtomics+"="+j.Atomics)
	}
	if j.Hosts != "" {
		env = append(env, bootstrap.EnvHosts+"="+strings.Join(strings.Split(j.Hosts, ""), ","))
	}
	var result launcher.Result
	err = testwatch.Run(t.Context(), func(ctx context.Context) error {
		ranks := testwatch.Marked(envSteps + "=" + told.file.Name())
		result, err = launcher.Run(testwatch.Showing(ctx, ranks), launcher.Spec{
			Programs: []launcher.Program{{Path: exe, N: j.Ranks}},
			Env:      env, Stdout: out, Stderr: out, Tag: true, Guardian: true, Grace: grace,
		})
		return errors.Join(err, context.Cause(ctx))
	}, told.all)
	require.NoError(t, err, "%s", out)
	return Outcome{result, out.String()}
}

// lock takes the host's lock on jobs of processes and returns a function that
// releases it.
func lock(t testing.TB) (unlock func()) {
	name := filepath.Join(os.TempDir(), fmt.Sprintf("gopgas-testjob-%d.lock", os.Getuid()))
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
	}
	require.NoError(t, err)
	return func() { require.NoError(t, file.Close()) }
}

// guardianMain makes this process the guardian of a job if the launcher started it as one.
func guardianMain() { launcher.GuardianMain() }
