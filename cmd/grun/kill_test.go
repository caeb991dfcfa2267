//go:build linux

package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// family is a rank with children that try to get away.
const family = `(setsid sh -c "sleep 1000 & sleep 1000" &) ; sleep 1000 & echo ready; sleep 1000`

// startFamilies starts a job of three families and returns when all are there.
func startFamilies(t *testing.T) (*job, *watched) {
	j := newJob(t, "-n", "3", "sh", "-c", family)
	out := startWatched(t, j)
	out.await(t, "ready", 3)
	return j, out
}

// startWatched starts a job and watches its output.
func startWatched(t *testing.T, j *job) *watched {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	j.cmd.Stdout = w
	require.NoError(t, j.cmd.Start())
	w.Close()
	return &watched{r: r}
}

// watched is the end of a pipe that a job writes to. Its own end shows that no
// process is left that inherited it.
type watched struct {
	r    *os.File
	text bytes.Buffer
}

func (w *watched) await(t *testing.T, word string, n int) {
	chunk := make([]byte, 512)
	for strings.Count(w.text.String(), word) < n {
		w.r.SetReadDeadline(time.Now().Add(testwatch.Patience()))
		got, err := w.r.Read(chunk)
		require.NoError(t, err)
		w.text.Write(chunk[:got])
	}
}

func (w *watched) awaitEnd(t *testing.T) {
	defer w.r.Close()
	w.r.SetReadDeadline(time.Now().Add(testwatch.Patience()))
	_, err := w.text.ReadFrom(w.r)
	require.NoError(t, err)
}

// gone waits until no process of the job is left and its guardians are.
func gone(t *testing.T, j *job) time.Duration {
	begin := time.Now()
	eventually(t, "the end of every process", func() bool { return len(j.left()) == 0 && len(guardians()) == 0 })
	return time.Since(begin)
}

func signalAll(t *testing.T, pids []string, sig syscall.Signal) {
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, sig))
	}
}

func TestKilledGrunLeavesNoProcessBehind(t *testing.T) {
	j, out := startFamilies(t)
	require.Greater(t, len(j.left()), 6)
	require.NoError(t, j.cmd.Process.Kill())
	j.cmd.Wait()
	t.Logf("gone after %v", gone(t, j))
	out.awaitEnd(t)
}

func TestKilledOuterGrunEndsAnInnerGrun(t *testing.T) {
	j := newJob(t, "-n", "1", grunPath, "-n", "2", "sh", "-c", family)
	out := startWatched(t, j)
	out.await(t, "ready", 2)
	require.NoError(t, j.cmd.Process.Kill())
	j.cmd.Wait()
	gone(t, j)
	out.awaitEnd(t)
}

func TestKilledRankEndsTheJob(t *testing.T) {
	j := newJob(t, "-n", "3", "sh", "-c", `test $GRUN_RANK = 1 && echo "<$$>"; sleep 1000`)
	out := startWatched(t, j)
	out.await(t, ">", 1)
	pid := strings.Trim(out.text.String(), "<>\n")
	signalAll(t, []string{pid}, syscall.SIGKILL)
	j.cmd.Wait()
	require.Equal(t, 137, j.cmd.ProcessState.ExitCode())
	require.Regexp(t, `^grun: rank 1 on \S+ died of SIGKILL\n$`, j.stderr.String())
	require.Empty(t, j.left())
	out.awaitEnd(t)
}

// TestKilledBuildLeavesNoTemporaryFiles kills grun while the go command works
// for it, which then cleans up by itself.
func TestKilledBuildLeavesNoTemporaryFiles(t *testing.T) {
	tmp := t.TempDir()
	j := newJob(t, "-n", "1", writePackage(t, `print("built")`))
	j.cmd.Env = append(j.cmd.Env, "XDG_CACHE_HOME="+t.TempDir(), "TMPDIR="+tmp, "GOCACHE="+goCache(t))
	j.cmd.WaitDelay = time.Millisecond // the go command holds our stderr
	require.NoError(t, j.cmd.Start())
	entries := func() int {
		list, err := os.ReadDir(tmp)
		require.NoError(t, err)
		return len(list)
	}
	eventually(t, "the build", func() bool { return entries() > 0 })
	require.NoError(t, j.cmd.Process.Kill())
	j.cmd.Wait()
	eventually(t, "the end of the go command", func() bool { return len(j.left()) == 0 })
	require.Zero(t, entries())
}

func TestGrunGoesOnWithoutItsGuardiansAndGetsNewOnes(t *testing.T) {
	j, out := startFamilies(t)
	eventually(t, "two guardians", func() bool { return len(guardians()) == 2 })
	first := guardians()
	signalAll(t, first, syscall.SIGKILL)
	eventually(t, "new guardians", func() bool {
		now := guardians()
		return len(now) == 2 && !slices.Contains(first, now[0]) && !slices.Contains(first, now[1])
	})
	require.NoError(t, j.cmd.Process.Kill())
	j.cmd.Wait()
	gone(t, j)
	out.awaitEnd(t)
}

func TestRanksDieWithGrunThoughItsGuardiansAreStopped(t *testing.T) {
	j := newJob(t, "-n", "3", "sh", "-c", "sleep 1000 & echo ready; exec sleep 2000")
	out := startWatched(t, j)
	out.await(t, "ready", 3)
	eventually(t, "two guardians", func() bool { return len(guardians()) == 2 })
	asleep := guardians()
	signalAll(t, asleep, syscall.SIGSTOP)
	require.NoError(t, j.cmd.Process.Kill())
	eventually(t, "the end of the ranks", func() bool { return !slices.ContainsFunc(j.left(), isRank) })
	require.Len(t, j.left(), 3, "their children are the guardians' business")
	signalAll(t, asleep, syscall.SIGCONT)
	j.cmd.Wait()
	gone(t, j)
	out.awaitEnd(t)
}

func isRank(entry string) bool {
	return strings.Contains(entry, "sleep 2000") || strings.Contains(entry, "grun -n")
}

func TestStoppedGuardiansDoNotHoldGrunUp(t *testing.T) {
	j, out := startFamilies(t)
	eventually(t, "two guardians", func() bool { return len(guardians()) == 2 })
	signalAll(t, guardians(), syscall.SIGSTOP)
	require.NoError(t, j.cmd.Process.Signal(syscall.SIGTERM))
	j.cmd.Wait()
	require.Equal(t, 128+int(syscall.SIGTERM), j.cmd.ProcessState.ExitCode())
	gone(t, j)
	out.awaitEnd(t)
}

func TestInterruptedGrunEndsLikeTheShellExpects(t *testing.T) {
	j := newJob(t, "-n", "3", "sleep", "1000") // no shell: theirs is a way of its own with SIGINT
	out := startWatched(t, j)
	sleeping := regexp.MustCompile(`(?m)^\d+ sleep 1000 $`)
	eventually(t, "three ranks", func() bool {
		return len(sleeping.FindAllString(strings.Join(j.left(), "\n"), -1)) == 3
	})
	require.NoError(t, j.cmd.Process.Signal(os.Interrupt))
	j.cmd.Wait()
	require.Equal(t, 130, j.cmd.ProcessState.ExitCode())
	require.Empty(t, j.left())
	out.awaitEnd(t)
	require.Contains(t, j.stderr.String(), "died of SIGINT (first of 3 failures)")
}

// TestRandomKillsLeaveNothing kills a rank, a child of one or a guardian, and then grun. It does so
// at random moments, from the first instant of a job on.
func TestRandomKillsLeaveNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	traces := tracesBefore(t)
	for range testwatch.ShortOr(15, 200) {
		j := newJob(t, "-n", "3", "--grace", "10ms", "--kill-wait", "10ms", "sh", "-c", family)
		require.NoError(t, j.cmd.Start())
		time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
		if random.IntN(2) == 0 {
			killOne(j, random)
			time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
		}
		j.cmd.Process.Kill()
		j.cmd.Wait()
		gone(t, j)
	}
	traces.requireNone(t)
}

// killOne kills a process of the job, guardians included.
func killOne(j *job, random *rand.Rand) {
	var pids []int
	for _, entry := range append(j.left(), guardians()...) {
		if pid, err := strconv.Atoi(strings.Fields(entry)[0]); err == nil && pid != j.cmd.Process.Pid {
			pids = append(pids, pid)
		}
	}
	if len(pids) > 0 {
		syscall.Kill(pids[random.IntN(len(pids))], syscall.SIGKILL)
	}
}

// traces are the names that jobs could leave on this machine.
type traces map[string]bool

func tracesBefore(t *testing.T) traces {
	before := make(traces)
	for _, name := range listTraces(t) {
		before[name] = true
	}
	return before
}

// requireNone waits, since other tests of the project may be using such names.
func (before traces) requireNone(t *testing.T) {
	eventually(t, "the end of names in shared memory and of sockets", func() bool {
		after := slices.DeleteFunc(listTraces(t), func(name string) bool { return before[name] })
		return len(after) == 0
	})
}

// listTraces lists shared memory files and abstract sockets that bear this
// project's name.
func listTraces(t *testing.T) (list []string) {
	list, err := filepath.Glob("/dev/shm/*")
	require.NoError(t, err)
	sockets, err := os.ReadFile("/proc/net/unix")
	require.NoError(t, err)
	for line := range strings.SplitSeq(string(sockets), "\n") {
		if _, name, found := strings.Cut(line, "@"); found {
			list = append(list, "@"+name)
		}
	}
	return slices.DeleteFunc(list, func(name string) bool {
		return !strings.Contains(name, "grun") && !strings.Contains(name, "gopgas")
	})
}
