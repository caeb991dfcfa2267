//go:build linux

package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestRanksGetTheirPlaceInTheirEnvironment(t *testing.T) {
	o := run(t, Spec{Programs: sh(3, `echo $GRUN_RANK $GRUN_SIZE $GRUN_LOCAL_RANK $GRUN_LOCAL_SIZE ${#GRUN_SECRET} ${GRUN_ADDR%:*}`)})
	lines := o.stdout.lines()
	slices.Sort(lines)
	require.Equal(t, []string{"0 3 0 3 64 127.0.0.1", "1 3 1 3 64 127.0.0.1", "2 3 2 3 64 127.0.0.1"}, lines)
}

func TestSecretIsOnNoCommandLine(t *testing.T) {
	o := run(t, Spec{Programs: sh(1, `grep -c "$GRUN_SECRET" /proc/self/environ; tr '\0' ' ' </proc/$PPID/cmdline | grep -c "$GRUN_SECRET"`)})
	require.Equal(t, []string{"1", "0"}, o.stdout.lines())
}

func TestSeveralProgramsShareAJob(t *testing.T) {
	o := run(t, Spec{
		Programs: []Program{
			{Path: "sh", Args: []string{"-c", "echo a $GRUN_RANK $WHAT"}, N: 1, Env: []string{"WHAT=one"}},
			{Path: "sh", Args: []string{"-c", "echo b $GRUN_RANK $WHAT"}, N: 2},
		},
		Env: []string{"WHAT=all"},
	})
	lines := o.stdout.lines()
	slices.Sort(lines)
	require.Equal(t, []string{"a 0 one", "b 1 all", "b 2 all"}, lines)
}

func TestProgramIsFoundFromHereNotFromTheWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.WriteFile("prog", []byte("#!/bin/sh\npwd\n"), 0o755))
	o := run(t, Spec{Programs: []Program{{Path: "./prog", N: 1}}, Dir: "/"})
	require.NoError(t, o.err)
	require.Equal(t, []string{"/"}, o.stdout.lines())
}

func TestTaggedLinesAreNeverMixed(t *testing.T) {
	const n, each = 4, 500
	line := strings.Repeat("0123456789", 30)
	// Two writes for each line, so that a line mixer has its chance.
	script := fmt.Sprintf(`i=0; while [ $i -lt %d ]; do printf "%%s" "<$GRUN_RANK %s"; echo " $i>"; i=$((i+1)); done`, each, line)
	o := run(t, Spec{Programs: sh(n, script), Tag: true})
	next := make([]int, n)
	for _, got := range o.stdout.lines() {
		var rank int
		_, err := fmt.Sscanf(got, "[%d] ", &rank)
		require.NoError(t, err, got)
		require.Equal(t, fmt.Sprintf("[%d] <%d %s %d>", rank, rank, line, next[rank]), got)
		next[rank]++
	}
	for _, count := range next {
		require.Equal(t, each, count)
	}
}

func TestLastLineWithoutEndGetsOne(t *testing.T) {
	o := run(t, Spec{Programs: sh(2, "printf end; printf err >&2"), Tag: true})
	require.ElementsMatch(t, []string{"[0] end", "[1] end"}, o.stdout.lines())
	require.ElementsMatch(t, []string{"[0] err", "[1] err"}, o.stderr.lines())
}

func TestEndlessLineIsCut(t *testing.T) {
	to := &buffer{}
	copyLines(&sink{w: to}, strings.NewReader(strings.Repeat("x", 3*maxLine)), "[0] ")
	require.Equal(t, 3*maxLine, strings.Count(to.String(), "x"))
	for _, line := range to.lines() {
		require.LessOrEqual(t, len(line), maxLine+128<<10)
	}
}

func TestOutputDirectoryHoldsAFileForEachRank(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	o := run(t, Spec{Programs: sh(2, "echo out $GRUN_RANK; echo err >&2"), OutputDir: dir, Tag: true})
	require.NoError(t, o.err)
	require.Empty(t, o.stdout.String()+o.stderr.String())
	for rank := range 2 {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("rank-%d.log", rank)))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("out %d\nerr\n", rank), string(b))
	}
}

func TestFilesAreHandedToTheRanks(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer f.Close()
	o := run(t, Spec{Programs: sh(1, "readlink /proc/self/fd/1"), Stdout: f})
	require.NoError(t, o.err)
	b, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.Equal(t, f.Name()+"\n", string(b))
}

func TestLostOutputIsAnErrorOfTheLauncher(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	spec := Spec{Programs: sh(2, "seq 100000"), Stdout: full, Tag: true}
	o := run(t, spec)
	require.ErrorIs(t, o.err, unix.ENOSPC)
	require.Equal(t, ExitInternal, o.ExitCode)
	spec.Programs = sh(2, "seq 100000; exit 3")
	require.Equal(t, 3, run(t, spec).ExitCode, "a rank's failure says more")
}

func TestLostOutputEndsTheJob(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	spec := Spec{Programs: sh(2, "echo a line; exec sleep 1000"), Stdout: full, Tag: true, Grace: time.Millisecond}
	o := run(t, spec)
	require.ErrorIs(t, o.err, unix.ENOSPC)
	require.Equal(t, ExitInternal, o.ExitCode)
	spec.Tag = false // ranks of other hosts have no tags, and no file of this host
	o = newFakeHosts(t, "").run(t, "a,b", spec)
	require.ErrorIs(t, o.err, unix.ENOSPC)
	require.Equal(t, ExitInternal, o.ExitCode)
	spec.Stdout, spec.OutputDir = nil, t.TempDir()
	require.NoError(t, os.Symlink("/dev/full", filepath.Join(spec.OutputDir, "rank-1.log")))
	o = newFakeHosts(t, "").run(t, "a,b", spec)
	require.ErrorIs(t, o.err, unix.ENOSPC)
}

func TestStandardInputGoesToTheRanksOfStdinTo(t *testing.T) {
	for _, c := range []struct {
		to   StdinTarget
		want []string
	}{
		{0, []string{"0:a b", "1:", "2:"}},
		{2, []string{"0:", "1:", "2:a b"}},
		{StdinAll, []string{"0:a b", "1:a b", "2:a b"}},
		{StdinNone, []string{"0:", "1:", "2:"}},
	} {
		o := run(t, Spec{Programs: sh(3, `read x; echo "$GRUN_RANK:$x"`), Stdin: strings.NewReader("a b\n"), StdinTo: c.to})
		lines := o.stdout.lines()
		slices.Sort(lines)
		require.Equal(t, c.want, lines, "to %d", c.to)
	}
}

func TestInputThatNeverEndsDoesNotHoldTheJobUp(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	defer r.Close()
	o := run(t, Spec{Programs: sh(2, `exit 0`), Stdin: r, StdinTo: StdinAll})
	require.NoError(t, o.err)
	require.Equal(t, 0, o.ExitCode)
}

func TestLongInputArrivesWholeThoughARankDoesNotReadIt(t *testing.T) {
	text := strings.Repeat("0123456789abcde\n", 20_000)
	o := run(t, Spec{Programs: sh(2, `test $GRUN_RANK = 1 || wc -c`), Stdin: strings.NewReader(text), StdinTo: StdinAll})
	require.Equal(t, fmt.Sprint(len(text)), strings.TrimSpace(o.stdout.String()))
}

func TestSignalsReachEveryRankAndItsChildren(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP} {
		name := strings.TrimPrefix(unix.SignalName(sig), "SIG")
		// The inner shell, a child of the rank, answers.
		inner := fmt.Sprintf(`trap "echo got; exit 0" %s; echo ready; while :; do sleep 0.01; done`, name)
		script := fmt.Sprintf(`trap : %s; sh -c '%s'`, name, inner)
		signals := make(chan os.Signal, 1)
		out := &onLine{want: "ready", n: 3, then: func() { signals <- sig }}
		o := run(t, Spec{Programs: sh(3, script), Signals: signals, Stdout: out})
		require.NoError(t, o.err)
		require.Equal(t, 3, strings.Count(out.String(), "got"), name)
	}
}

func TestRanksKilledByAForwardedSignalAreFailuresThatNameIt(t *testing.T) {
	signals := make(chan os.Signal, 1)
	o := run(t, Spec{
		Programs: []Program{{Path: "sleep", Args: []string{"100"}, N: 2}},
		Signals:  signals, Started: func() { signals <- syscall.SIGINT },
	})
	require.Equal(t, 130, o.ExitCode)
	require.Contains(t, o.Summary(), "died of SIGINT")
}

func TestSecondInterruptKills(t *testing.T) {
	signals := make(chan os.Signal, 2)
	out := &onLine{want: "ready", n: 2, then: func() { signals <- syscall.SIGINT; signals <- syscall.SIGINT }}
	o := run(t, Spec{Programs: sh(2, `trap "" INT TERM; echo ready; while :; do sleep 1; done`), Signals: signals, Stdout: out})
	require.NoError(t, o.err)
	require.Equal(t, 130, o.ExitCode)
}

// onLine does something once a line has been printed n times.
type onLine struct {
	buffer
	want string
	n    int
	then func()
	done bool
}

func (o *onLine) Write(p []byte) (int, error) {
	n, err := o.buffer.Write(p)
	if !o.done && strings.Count(o.String(), o.want) == o.n {
		o.done = true
		o.then()
	}
	return n, err
}

func TestEndOfContextEndsTheJob(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	out := &onLine{want: "ready", n: 2, then: func() { cancel(why) }}
	result, err := Run(ctx, Spec{Programs: sh(2, "echo ready; exec sleep 100"), Stdout: out})
	require.ErrorIs(t, err, why)
	require.Equal(t, ExitInternal, result.ExitCode)
}
