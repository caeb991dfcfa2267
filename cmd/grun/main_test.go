//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// grunPath is grun, built once: go run would turn every exit code into 1.
var grunPath string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "grun-test-")
	if err != nil {
		panic(err)
	}
	grunPath = filepath.Join(dir, "grun")
	if !testwatch.Race {
		buildPrograms(dir)
	}
	testwatch.HeedSignals()
	testwatch.Overlap()
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// buildPrograms builds grun and the programs that tests start with it.
func buildPrograms(dir string) {
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir+"/", ".", "./testdata/barriers", "./testdata/memory", "../../examples/hello")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
}

// built returns the path of a program of buildPrograms. Under the race detector the test
// skips: the detector sees no other process.
func built(t *testing.T, name string) string {
	t.Helper()
	if testwatch.Race {
		t.Skip("the race detector does not look into", name)
	}
	return filepath.Join(filepath.Dir(grunPath), name)
}

// A job is one run of grun. All its processes carry mark in their environments,
// apart from the guardians, whose executable is grun's.
type job struct {
	cmd            *exec.Cmd
	mark           string
	stdout, stderr bytes.Buffer
}

const envMark = "GRUN_TEST_MARK"

// newJob prepares grun under a watchdog, with a directory for temporary files
// in which nothing may be left.
func newJob(t *testing.T, args ...string) *job {
	path, mark := built(t, "grun"), envMark+"="+uuid.NewString()
	ctx, cancel := testwatch.With(context.Background(), testwatch.Processes(testwatch.Marked(mark)))
	t.Cleanup(cancel)
	j := &job{cmd: exec.CommandContext(ctx, path, args...), mark: mark}
	tmp := t.TempDir()
	j.cmd.Env = append(os.Environ(), j.mark, "TMPDIR="+tmp)
	j.cmd.Stdout, j.cmd.Stderr = &j.stdout, &j.stderr
	j.cmd.WaitDelay = 5 * time.Second
	t.Cleanup(func() {
		if errors.Is(context.Cause(ctx), testwatch.ErrStuck) {
			t.Error("watchdog: grun did not end")
		}
		j.killLeft()
		left, err := os.ReadDir(tmp)
		require.NoError(t, err)
		require.Empty(t, left, "temporary files")
	})
	return j
}

// run runs grun to its end and returns its exit code.
func (j *job) run(t *testing.T) int {
	t.Helper()
	err := j.cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	require.Empty(t, j.left(), "processes left behind")
	return j.cmd.ProcessState.ExitCode()
}

// grun runs grun to its end.
func grun(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	j := newJob(t, args...)
	code = j.run(t)
	return code, j.stdout.String(), j.stderr.String()
}

// left lists the living processes of a job other than grun itself.
func (j *job) left() (list []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !strings.Contains("\x00"+string(env), "\x00"+j.mark+"\x00") {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		list = append(list, filepath.Base(dir)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
	}
	return list
}

// killLeft cleans up after a test that has failed.
func (j *job) killLeft() {
	for _, entry := range j.left() {
		if pid, err := strconv.Atoi(strings.Fields(entry)[0]); err == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// guardians lists the guardians of the grun under test.
func guardians() (pids []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		exe, _ := os.Readlink(filepath.Join(dir, "exe"))
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if exe == grunPath && strings.HasPrefix(string(cmdline), "grun-guardian") {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}

// eventually waits for something that another process does.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > testwatch.Patience() {
			t.Fatal(what, "did not happen")
		}
	}
}

func TestExitCodesReachTheShell(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-n", "3", "true"}, 0, ""},
		{[]string{"-n", "3", "sh", "-c", "test $GRUN_RANK = 1 && exit 7; sleep 100"}, 7, "exited with code 7\n"},
		{[]string{"-n", "2", "--grace", "0", "sh", "-c", "test $GRUN_RANK = 1 && kill -SEGV $$; sleep 100"}, 139, "died of SIGSEGV"},
		{[]string{"-n", "2", "--timeout", "50ms", "sleep", "100"}, 124, "timed out after 50ms"},
		{[]string{"-n", "2", "no-such-program-anywhere"}, 127, "no-such-program-anywhere"},
		{[]string{"-n", "2", "/etc/passwd"}, 126, "permission denied"},
		{[]string{"-n", "2", t.TempDir()}, 126, "does not build"},
		{[]string{"-n", "2", "../../window"}, 126, "is not package main"},
		{[]string{"--wdir", "/no-such-folder", "true"}, 70, "/no-such-folder is no directory"},
		{[]string{"-n", "2"}, 2, "no program"},
		{[]string{"-n", "0", "true"}, 2, "at least one rank"},
		{[]string{"-n", "1000000", "true"}, 2, "--oversubscribe"},
		{[]string{"-n", "200000", "true", ":", "-n", "200000", "true"}, 2, "--oversubscribe"},
		{[]string{"-n", "x", "true"}, 2, "invalid argument"},
		{[]string{"--no-such-flag", "true"}, 2, "unknown flag"},
		{[]string{"--stdin", "9", "true"}, 70, "rank 9 of 1"},
		{[]string{"--provider", "pigeon", "true"}, 2, "choose auto, shm, tcp or ibv"},
		{[]string{"--heap", "much", "true"}, 2, "--heap much"},
		{[]string{"--provider", "tcp", "-x", "GRUN_PROVIDER=shm", "true"}, 2, "--provider tcp and -x GRUN_PROVIDER=shm contradict each other"},
		{[]string{"--heap", "1GiB", "true", ":", "-x", "GRUN_HEAP=2GiB", "true"}, 2, "--heap 1GiB and -x GRUN_HEAP=2GiB contradict"},
		{[]string{"--peer-timeout", "3", "-x", "GRUN_PEER_TIMEOUT=4s", "true"}, 2, "--peer-timeout 3s and -x GRUN_PEER_TIMEOUT=4s contradict"},
		{[]string{"--stats", "-x", "GRUN_STATS=0", "true"}, 2, "--stats and -x GRUN_STATS=0 contradict"},
		{[]string{"--tls", "-x", "GRUN_TLS=0", "true"}, 2, "--tls and -x GRUN_TLS=0 contradict"},
		{[]string{"--provider", "tcp", "-x", "GRUN_PROVIDER=tcp", "true"}, 0, ""},
		{[]string{"-x", "GRUN_RANK=1", "true"}, 2, "grun itself sets GRUN_RANK"},
		{[]string{"-x", "GRUN_TUNED=/no/table", "true"}, 2, "GRUN_TUNED=/no/table: stat /no/table: no such file or directory; name a file"},
		{[]string{"-x", "GRUN_TUNED=off", "true"}, 0, ""},
		{[]string{"--wdir", "/etc", "-x", "GRUN_TUNED=passwd", "true"}, 0, ""},
		{[]string{"--bind-to", "socket", "true"}, 2, "choose none, core or numa"},
	} {
		code, _, stderr := grun(t, c.args...)
		require.Equal(t, c.code, code, "%v: %s", c.args, stderr)
		require.Contains(t, stderr, c.says)
		if c.code == 0 {
			require.Empty(t, stderr)
		}
	}
}

func TestMissingTableNamedInTheEnvironmentIsAnError(t *testing.T) {
	t.Setenv("GRUN_TUNED", "/no/table")
	code, _, stderr := grun(t, "true")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "GRUN_TUNED=/no/table")
	code, _, stderr = grun(t, "-x", "GRUN_TUNED=off", "true")
	require.Equal(t, 0, code, stderr)
}

func TestStatisticsVariableActsLikeTheFlag(t *testing.T) {
	for _, args := range [][]string{{"--stats", "true"}, {"-x", "GRUN_STATS=1", "true"}, {"true", ":", "-x", "GRUN_STATS=1", "true"}} {
		_, _, stderr := grun(t, args...)
		require.Contains(t, stderr, "no rank reported statistics", args)
	}
	t.Setenv("GRUN_STATS", "1")
	_, _, stderr := grun(t, "true")
	require.Contains(t, stderr, "no rank reported statistics")
}

func TestMPISpellingWorks(t *testing.T) {
	for _, args := range [][]string{
		{"-np", "2"}, {"--np", "2"}, {"-n", "2"}, {"-n2"}, {"-np=2"}, {"-np", "2", "-bind-to", "core"},
		{"-oversubscribe", "-np", "2"}, {"-tag-output=false", "-n", "2"}, {"-n", "2", "--"},
	} {
		code, stdout, stderr := grun(t, append(args, "sh", "-c", "echo $GRUN_SIZE", "-np", "5")...)
		require.Equal(t, 0, code, "%v: %s", args, stderr)
		require.Equal(t, "2\n2\n", stdout, "%v", args)
	}
}

func TestTimesAreDurationsOrSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{"2": 2 * time.Second, "0.5": 500 * time.Millisecond, "3m": 3 * time.Minute, "0": 0} {
		var d time.Duration
		require.NoError(t, span{&d}.Set(text))
		require.Equal(t, want, d)
	}
	for _, text := range []string{"", "x", "-1", "-1s", "5 apples"} {
		var d time.Duration
		require.Error(t, span{&d}.Set(text), text)
	}
}

func TestFlagsAfterTheProgramAreItsOwn(t *testing.T) {
	code, stdout, _ := grun(t, "-n", "1", "echo", "-n", "--timeout", "-h", "doctor", "x")
	require.Equal(t, 0, code)
	require.Equal(t, "--timeout -h doctor x", stdout)
}

func TestVariablesAreSetAndPassedOn(t *testing.T) {
	t.Setenv("FROM_HERE", "here")
	code, stdout, _ := grun(t, "-x", "A=1=2", "-x", "FROM_HERE", "-x", "NOT_SET", "--heap", "64MiB", "--provider", "tcp",
		"--peer-timeout", "30s", "--start-timeout", "40s", "--iface", "10.1.0.0/16", "--tls", "--stats", "sh", "-c", "echo $A $FROM_HERE ${NOT_SET-unset} $GRUN_HEAP $GRUN_PROVIDER $GRUN_PEER_TIMEOUT $GRUN_START_TIMEOUT $GRUN_IFACE $GRUN_TLS $GRUN_STATS")
	require.Equal(t, 0, code)
	require.Equal(t, "1=2 here unset 64MiB tcp 30s 40s 10.1.0.0/16 1 1\n", stdout)
}

func TestColonSeparatesPrograms(t *testing.T) {
	code, stdout, stderr := grun(t, "--tag-output", "-n", "1", "-x", "V=a", "sh", "-c", "echo $V", ":", "-np", "2", "-x", "V=b", "sh", "-c", "echo $V")
	require.Equal(t, 0, code, stderr)
	require.ElementsMatch(t, []string{"[0] a", "[1] b", "[2] b"}, strings.Split(strings.TrimSpace(stdout), "\n"))
	code, _, stderr = grun(t, "true", ":", "--timeout", "5s", "true")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "before the first program")
	code, _, _ = grun(t, "true", ":", "-n", "2")
	require.Equal(t, 2, code)
}

func TestStandardInputReachesRankZero(t *testing.T) {
	j := newJob(t, "-n", "2", "--tag-output", "sh", "-c", "cat")
	j.cmd.Stdin = strings.NewReader("one\ntwo\n")
	require.Equal(t, 0, j.run(t))
	require.Equal(t, "[0] one\n[0] two\n", j.stdout.String())
}

func TestHelpShowsExamplesFlagsAndExitCodes(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--help"}, {"help"}, {}} {
		code, stdout, _ := grun(t, args...)
		require.Equal(t, 0, code)
		for _, want := range []string{"grun -n 4 ./examples/hello", "Exit codes", "--kill-wait", "doctor", "completion"} {
			require.Contains(t, stdout, want)
		}
	}
}

func TestVersionAndCompletion(t *testing.T) {
	code, stdout, _ := grun(t, "version")
	require.Equal(t, 0, code)
	require.Regexp(t, `^grun \S+ go1\.\S+ linux/`, stdout)
	code, stdout, _ = grun(t, "completion", "bash")
	require.Equal(t, 0, code)
	require.Contains(t, stdout, "__start_grun")
	code, stdout, _ = grun(t, "__complete", "--provider", "")
	require.Equal(t, 0, code)
	require.Contains(t, stdout, "shm")
}

// writePackage writes a Go program and returns its directory.
func writePackage(t *testing.T, body string) string {
	dir := filepath.Join(t.TempDir(), "prog")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module prog\n\ngo 1.26\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), fmt.Appendf(nil, "package main\n\nfunc main() { %s }\n", body), 0o644))
	return dir
}

// goCache keeps builds quick where the user's cache directory is another.
func goCache(t *testing.T) string {
	dir, err := exec.Command("go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(dir))
}

func TestGoFileIsBuiltAndRun(t *testing.T) {
	j := newJob(t, "-n", "2", filepath.Join(writePackage(t, `print("file ")`), "main.go"))
	j.cmd.Env = append(j.cmd.Env, "XDG_CACHE_HOME="+t.TempDir(), "GOCACHE="+goCache(t))
	require.Equal(t, 0, j.run(t), j.stderr.String())
	require.Equal(t, "file file ", j.stderr.String())
}

func TestPackageDirectoryIsBuiltAndRun(t *testing.T) {
	cache := t.TempDir()
	dir := writePackage(t, `print("one ")`)
	start := func() (int, string) {
		j := newJob(t, "-n", "2", dir)
		j.cmd.Env = append(j.cmd.Env, "XDG_CACHE_HOME="+cache, "GOCACHE="+goCache(t))
		code := j.run(t)
		return code, j.stderr.String()
	}
	code, out := start()
	require.Equal(t, 0, code)
	require.Equal(t, "one one ", out)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() { print(\"two \") }\n"), 0o644))
	code, out = start()
	require.Equal(t, 0, code)
	require.Equal(t, "two two ", out, "what changed is built again")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() { nonsense }\n"), 0o644))
	code, out = start()
	require.Equal(t, 126, code)
	require.Contains(t, out, "undefined: nonsense")
}
