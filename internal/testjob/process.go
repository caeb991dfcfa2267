package testjob

import (
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

// envBody makes the test binary run one of its bodies instead of the tests.
const envBody = "GOPGAS_TESTJOB_BODY"

// Variable returns the variable by which a test binary runs a body, as a rank of any job.
func Variable(body string) string { return envBody + "=" + body }

// A Job describes how processes run a body.
type Job struct {
	Ranks    int
	Provider string   // "" takes grun's default: shm on one host
	Queued   bool     // mapping is off
	Atomics  string   // as in Config
	Hosts    string   // as in Config
	Env      []string // NAME=value, for the ranks, in addition
}

// Processes lists the ways to run jobs of n processes.
func Processes(n int) []Job {
	list := []Job{{Provider: "shm", Ranks: n}, {Provider: "shm", Queued: true, Ranks: n}, {Provider: "tcp", Ranks: n}}
	if onDevices {
		list = append(list, Job{Provider: "ibv", Ranks: n}, Job{Provider: "ibv", Atomics: "nic", Ranks: n})
	}
	return list
}

func (j Job) String() string {
	name := "processes-" + j.Provider
	if j.Queued {
		name += "-queued"
	}
	if j.Atomics != "" {
		name += "-atomics"
	}
	if j.Hosts != "" {
		name += "-" + j.Hosts
	}
	return name
}

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

// grace lets the survivors of a death come to their end, on a machine however slow. The
// watchdog ends survivors that make no step.
const grace = time.Hour

// Try is Run for jobs that do not end well. Jobs of processes run one at a
// time on a host, whichever packages' tests start them.
func (j Job) Try(t testing.TB, body string) Outcome {
	t.Helper()
	defer lock(t)()
	told := newStepsFile(t, j.Ranks)
	ctx, stop := testwatch.With(t.Context(), told.all)
	defer stop()
	exe, err := os.Executable()
	require.NoError(t, err)
	out := &buffer{}
	env := append([]string{envBody + "=" + body, envSteps + "=" + told.file.Name(), bootstrap.EnvProvider + "=" + j.Provider,
		bootstrap.EnvHeap + "=" + strconv.Itoa(heap)}, j.Env...)
	if j.Queued {
		env = append(env, bootstrap.EnvFMAMax+"=0")
	}
	if j.Atomics != "" {
		env = append(env, bootstrap.EnvAtomics+"="+j.Atomics)
	}
	if j.Hosts != "" {
		env = append(env, bootstrap.EnvHosts+"="+strings.Join(strings.Split(j.Hosts, ""), ","))
	}
	result, err := launcher.Run(ctx, launcher.Spec{
		Programs: []launcher.Program{{Path: exe, N: j.Ranks}},
		Env:      env, Stdout: out, Stderr: out, Tag: true, Guardian: true, Grace: grace,
	})
	require.NoError(t, err, "%s", out)
	require.NoError(t, ctx.Err(), "%s", out)
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
