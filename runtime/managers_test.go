//go:build linux

package runtime_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// A manager is a process manager of this machine.
type manager []string

var (
	hydra       = manager{"mpiexec.hydra", "-n", "3"}
	hydraByPort = manager{"mpiexec.hydra", "-pmi-port", "-n", "3"}
	hydraHosts  = manager{"mpiexec.hydra", "-launcher", "fork", "-hosts", "a,b", "-n", "3"}
	mpirun      = manager{"mpirun.openmpi", "--oversubscribe", "-n", "3"}
)

func (m manager) String() string { return strings.Join(m, " ") }

// run runs a program of this test binary under the manager. It skips where the manager is not
// installed, unless make mpi runs it.
func (m manager) run(t *testing.T, program string, vars ...string) (code int, text string) {
	t.Helper()
	if _, err := exec.LookPath(m[0]); err != nil && os.Getenv("GOPGAS_MPI") == "" {
		t.Skipf("%v: make mpi installs it", err)
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	mark := "GOPGAS_TEST_JOB=" + t.Name()
	cmd := exec.CommandContext(testwatch.Context(t, testwatch.Processes(testwatch.Marked(mark))), m[0], append(m[1:], exe)...)
	cmd.Env = append(append(os.Environ(), envMain+"="+program, mark, "GRUN_HEAP=1M", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"), vars...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_, err = cmd.StdinPipe() // stays open: mpiexec.hydra may die of SIGPIPE as it tells ranks that end of the end of its input
	require.NoError(t, err)
	err = cmd.Run()
	if cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func TestProcessManagersRunRanks(t *testing.T) {
	for _, m := range []manager{hydra, hydraByPort, hydraHosts, mpirun} {
		t.Run(m.String(), func(t *testing.T) {
			code, text := m.run(t, "meet", "GRUN_VERBOSE=1")
			require.Zero(t, code, text)
			for rank := range 3 {
				require.Contains(t, text, fmt.Sprintf("rank %d of 3\n", rank))
			}
			require.Regexp(t, "started by (PMI|mpirun), joined at ", text)
		})
	}
	code, text := manager{"mpiexec.hydra", "-n", "1"}.run(t, "meet")
	require.Zero(t, code, text)
	require.Contains(t, text, "rank 0 of 1\n")
}

// TestKilledRankEndsTheJobOfAProcessManager expects no words of survivors: hydra and mpirun
// kill them at once.
func TestKilledRankEndsTheJobOfAProcessManager(t *testing.T) {
	for _, m := range []manager{hydra, hydraByPort, mpirun} {
		for _, victim := range []string{"0", "1"} {
			t.Run(m.String()+"/"+victim, func(t *testing.T) {
				ready := filepath.Join(t.TempDir(), "ready") // hydra may drop the line that says so
				code, text := m.run(t, "survive", envVictim+"="+victim, envFall+"=1", envReady+"="+ready)
				require.NotZero(t, code, text)
				require.FileExists(t, ready, text)
			})
		}
	}
}

func TestErrorAtRankZeroEndsTheJobOfAProcessManager(t *testing.T) {
	t.Parallel() // it waits most of its time
	for _, m := range []manager{hydra, hydraByPort} {
		t.Run(m.String(), func(t *testing.T) {
			code, text := m.run(t, "fail")
			require.Equal(t, 1, code, text)
			require.Equal(t, 3, strings.Count(text, "rank 0: no more"), text)
			require.Equal(t, 2, strings.Count(text, ": job aborted ("), text)
		})
	}
	t.Run("stay", func(t *testing.T) {
		code, text := hydra.run(t, "stay", "GRUN_PEER_TIMEOUT=2s")
		require.NotZero(t, code, text) // TestRankZeroAbortsRanksThatDoNotLeave reads the words: hydra may drop them
	})
}

// TestMpirunOnSeveralHostsNeedsAnAddress has a script in place of ssh, which starts mpirun's
// daemons of two hosts here.
func TestMpirunOnSeveralHostsNeedsAnAddress(t *testing.T) {
	t.Parallel() // it waits most of its time
	script := filepath.Join(t.TempDir(), "ssh")
	// Each daemon has a folder of its own, as on its own host: two in one folder disturb each other.
	text := "#!/bin/sh\nwhile case $1 in -*) true;; *) false;; esac; do shift; done\nTMPDIR=$(dirname \"$0\")/$1\nmkdir -p \"$TMPDIR\"\nexport TMPDIR\nshift\nexec sh -c \"$*\"\n"
	require.NoError(t, os.WriteFile(script, []byte(text), 0o755))
	hosts := manager{"mpirun.openmpi", "--mca", "plm_rsh_agent", script, "-host", "127.0.0.2:2,127.0.0.3:2", "-n", "3"}
	code, out := hosts.run(t, "meet")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "mpirun -x GRUN_ADDR=HOST:7000 -x GRUN_SECRET_FILE=job.secret")
	by := newHand(t, 3, "127.0.0.1")
	code, out = append(hosts, "-x", by.vars[0], "-x", by.vars[2]).run(t, "meet")
	require.Zero(t, code, out)
	for rank := range 3 {
		require.Contains(t, out, fmt.Sprintf("rank %d of 3\n", rank))
	}
}
