//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// state returns the letter of a process's state, and its parent.
func state(t *testing.T, pid string) (status string, parent string) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	require.NoError(t, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return fields[0], fields[1]
}

// inState reports whether grun and all its ranks are stopped, or all of them run.
func (j *job) inState(t *testing.T, stopped bool) bool {
	grun := fmt.Sprint(j.cmd.Process.Pid)
	status, _ := state(t, grun)
	all := (status == "T") == stopped
	for _, entry := range j.left() {
		status, parent := state(t, strings.Fields(entry)[0])
		if parent == grun {
			all = all && (status == "T") == stopped
		}
	}
	return all
}

// stopFor stops a job as Ctrl-Z does and continues it as fg does.
func (j *job) stopFor(t *testing.T, d time.Duration) {
	require.NoError(t, j.cmd.Process.Signal(syscall.SIGTSTP))
	eventually(t, "the stop of grun and its ranks", func() bool { return j.inState(t, true) })
	time.Sleep(d)
	require.NoError(t, j.cmd.Process.Signal(syscall.SIGCONT))
	eventually(t, "the end of the stop", func() bool { return j.inState(t, false) })
}

// newStoppable prepares a job in a process group of its own: the kernel stops no
// group whose parents could not continue it.
func newStoppable(t *testing.T, args ...string) *job {
	j := newJob(t, args...)
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return j
}

func TestStoppedJobGoesOnAfterLongerThanThePeerTimeout(t *testing.T) {
	for _, provider := range []string{"shm", "tcp"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel() // it waits for most of the time
			program, end := built(t, "barriers"), filepath.Join(t.TempDir(), "end")
			j := newStoppable(t, "-n", "3", "--peer-timeout", "4s", "--provider", provider, program, end)
			out := startWatched(t, j)
			out.await(t, ">", 3)
			j.stopFor(t, 5*time.Second) // a busy machine delays answers for less than the timeout
			require.NoError(t, os.WriteFile(end, nil, 0o600))
			out.awaitEnd(t)
			j.cmd.Wait()
			require.Equal(t, 0, j.cmd.ProcessState.ExitCode(), j.stderr.String())
			require.Empty(t, j.stderr.String())
		})
	}
}

// TestStoppedJobOfSeveralHostsGoesOn stops the ranks of two agents for longer than the
// silence after which an agent gives grun up.
func TestStoppedJobOfSeveralHostsGoesOn(t *testing.T) {
	t.Parallel()
	program, end := built(t, "barriers"), filepath.Join(t.TempDir(), "end")
	j := newStoppable(t, "-H", "a:2,b", "--peer-timeout", "2s", "--ssh-cmd", fakeSSH(t), program, end)
	out := startWatched(t, j)
	out.await(t, ">", 3)
	ranksAre := func(stopped bool) bool {
		n := 0
		for _, entry := range j.left() {
			pid, line, _ := strings.Cut(entry, " ")
			if !strings.HasPrefix(line, program) {
				continue
			}
			if status, _ := state(t, pid); (status == "T") == stopped {
				n++
			}
		}
		return n == 3
	}
	require.NoError(t, j.cmd.Process.Signal(syscall.SIGTSTP))
	eventually(t, "the stop of the ranks", func() bool { return ranksAre(true) })
	time.Sleep(5 * time.Second)
	require.NoError(t, j.cmd.Process.Signal(syscall.SIGCONT))
	eventually(t, "the end of the stop", func() bool { return ranksAre(false) })
	require.NoError(t, os.WriteFile(end, nil, 0o600))
	out.awaitEnd(t)
	j.cmd.Wait()
	require.Equal(t, 0, j.cmd.ProcessState.ExitCode(), j.stderr.String())
}

func TestHangupThatNohupIgnoresStaysIgnored(t *testing.T) {
	const ignored = `grep SigIgn /proc/self/status; kill -HUP $PPID; exec grep SigIgn /proc/$PPID/status`
	j := newJob(t)
	j.cmd.Path, j.cmd.Args = "/bin/sh", []string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh", grunPath, "-n", "1", "sh", "-c", ignored}
	require.Equal(t, 0, j.run(t), j.stderr.String())
	for line := range strings.Lines(j.stdout.String()) {
		require.Regexp(t, `[13579bdf]\n$`, line, "bit 0 is SIGHUP's")
	}
}
