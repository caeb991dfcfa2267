//go:build linux

package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

func TestRanksOfOtherHostsGetTheirPlaceInTheirEnvironment(t *testing.T) {
	o := newFakeHosts(t, "").run(t, "a:2,b,c:3", Spec{
		Programs: sh(6, `echo $GRUN_RANK $GRUN_SIZE $GRUN_LOCAL_RANK $GRUN_LOCAL_SIZE $GRUN_HOST ${#GRUN_SECRET}`), Tag: true})
	require.NoError(t, o.err)
	lines := o.stdout.lines()
	slices.Sort(lines)
	require.Equal(t, []string{
		"[0@a] 0 6 0 2 a 64", "[1@a] 1 6 1 2 a 64", "[2@b] 2 6 0 1 b 64",
		"[3@c] 3 6 0 3 c 64", "[4@c] 4 6 1 3 c 64", "[5@c] 5 6 2 3 c 64",
	}, lines)
}

func TestRanksOfSeveralHostsMeet(t *testing.T) {
	for _, list := range []string{"a:2,b:2", "localhost:2,b:2", "a,localhost,b,c"} {
		o := newFakeHosts(t, "").run(t, list, Spec{Programs: []Program{ranks(4, "report")}})
		require.NoError(t, o.err, list)
		require.Equal(t, 0, o.ExitCode, o.Summary())
		require.Len(t, o.Reports, 4)
	}
}

// TestHostsMayHideTheirProcesses gives each host a pid namespace, as real hosts have.
func TestHostsMayHideTheirProcesses(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes pid namespaces")
	}
	f := newFakeHosts(t, `exec unshare --pid --fork --kill-child --mount-proc sh -c "$line"`)
	o := f.run(t, "a:2,localhost,b:2", Spec{Programs: []Program{ranks(5, "report")}})
	require.NoError(t, o.err)
	require.Equal(t, 0, o.ExitCode, o.Summary())
	require.Len(t, o.Reports, 5)
}

func TestOutputOfOtherHostsArrivesWhole(t *testing.T) {
	const lines = 20_000
	o := newFakeHosts(t, "").run(t, "a,b:2", Spec{Programs: sh(3, fmt.Sprintf("seq %d; seq %d >&2", lines, lines))})
	require.NoError(t, o.err)
	require.Len(t, o.stdout.lines(), 3*lines)
	require.Len(t, o.stderr.lines(), 3*lines)
}

func TestOutputDirectoryHoldsAFileForEachRankOfAnotherHost(t *testing.T) {
	dir := t.TempDir()
	o := newFakeHosts(t, "").run(t, "a,localhost,b", Spec{Programs: sh(3, "echo out $GRUN_RANK; echo err >&2"), OutputDir: dir})
	require.NoError(t, o.err)
	for rank := range 3 {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("rank-%d.log", rank)))
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		require.ElementsMatch(t, []string{fmt.Sprint("out ", rank), "err"}, lines, "two streams bring them")
	}
}

func TestStandardInputReachesRanksOfOtherHosts(t *testing.T) {
	text := strings.Repeat("0123456789abcde\n", 40_000)
	for to, want := range map[StdinTarget]int{1: 1, StdinAll: 3} {
		o := newFakeHosts(t, "").run(t, "localhost,a,b", Spec{Programs: sh(3, "wc -c"), Stdin: strings.NewReader(text), StdinTo: to})
		require.NoError(t, o.err)
		require.Equal(t, want, strings.Count(o.stdout.String(), fmt.Sprint(len(text))), "to %d", to)
	}
}

func TestInputThatARankOfAnotherHostDoesNotReadHoldsNothingUp(t *testing.T) {
	text := strings.Repeat("0123456789abcde\n", 100_000)
	o := newFakeHosts(t, "").run(t, "a,b", Spec{Programs: sh(2, "test $GRUN_RANK = 0 || wc -c"), Stdin: strings.NewReader(text), StdinTo: StdinAll})
	require.NoError(t, o.err)
	require.Equal(t, fmt.Sprint(len(text)), strings.TrimSpace(o.stdout.String()))
}

func TestSummaryNamesTheHostOfTheRank(t *testing.T) {
	o := newFakeHosts(t, "").run(t, "a:2,b:2", Spec{Programs: sh(4, "test $GRUN_RANK = 3 && kill -SEGV $$; sleep 100")})
	require.NoError(t, o.err)
	require.Equal(t, 139, o.ExitCode)
	require.Equal(t, "rank 3 on b died of SIGSEGV", o.Summary())
}

func TestSurvivorsOnOtherHostsHearOfADeathAtOnce(t *testing.T) {
	o := newFakeHosts(t, "").run(t, "a:2,b,c", Spec{Programs: []Program{ranks(4, "one dies")}, Grace: testwatch.Patience()})
	require.NoError(t, o.err)
	require.Equal(t, 137, o.ExitCode)
	require.Equal(t, Failure{Rank: 3, Host: "c", Code: 137, Signal: syscall.SIGKILL, Reason: "died of SIGKILL"}, o.Failures[0])
	for _, line := range o.stdout.lines() {
		require.Equal(t, "dead 3: died of SIGKILL on c", line)
	}
}

func TestErrorsOfSeveralHostsThatDifferOnlyInTheRankArePrintedOnce(t *testing.T) {
	o := newFakeHosts(t, "").run(t, "a:3,b:3", Spec{Programs: []Program{ranks(6, "say last")}, Grace: testwatch.Patience()})
	require.Len(t, o.Failures, 6)
	require.Len(t, o.stderr.lines(), 4, "two of a first rank, one of rank 2, one about the rest: %v", o.stderr.lines())
}

func TestSignalsReachRanksOfOtherHosts(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1} {
		script := fmt.Sprintf(`trap "echo got; exit 0" %s; echo ready; while :; do sleep 0.01; done`, name)
		signals := make(chan os.Signal, 1)
		out := &onLine{want: "ready", n: 3, then: func() { signals <- sig }}
		o := newFakeHosts(t, "").run(t, "a,b,localhost", Spec{Programs: sh(3, script), Signals: signals, Stdout: out})
		require.NoError(t, o.err)
		require.Equal(t, 3, strings.Count(out.String(), "got"), name)
	}
}

func TestSecondInterruptKillsRanksOfOtherHosts(t *testing.T) {
	signals := make(chan os.Signal, 2)
	out := &onLine{want: "ready", n: 2, then: func() { signals <- syscall.SIGINT; signals <- syscall.SIGINT }}
	o := newFakeHosts(t, "").run(t, "a,b", Spec{Programs: sh(2, `trap "" INT TERM; echo ready; while :; do sleep 1; done`), Signals: signals, Stdout: out})
	require.NoError(t, o.err)
	require.Equal(t, 130, o.ExitCode)
}

func TestInterruptEndsAJobWhoseHostsAreNotReady(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGINT
	o := newFakeHosts(t, "sleep 1000").run(t, "a,b", Spec{Programs: sh(2, "true"), Signals: signals})
	require.NoError(t, o.err)
	require.Equal(t, 130, o.ExitCode)
}

func TestTimeoutEndsTheRanksOfOtherHosts(t *testing.T) {
	o := newFakeHosts(t, "").run(t, "a,b", Spec{Programs: sh(2, "sleep 100"), Timeout: 100 * time.Millisecond})
	require.NoError(t, o.err)
	require.Equal(t, ExitTimeout, o.ExitCode)
}

func TestProcessesThatARankLeavesOnAnotherHostAreKilled(t *testing.T) {
	o := newFakeHosts(t, "").run(t, "a,b", Spec{Programs: sh(2, `(setsid sh -c 'sleep 1000 & sleep 1000' >/dev/null 2>&1 &) ; sleep 1000 & echo started`)})
	require.NoError(t, o.err)
	require.Equal(t, []string{"started", "started"}, o.stdout.lines())
}

func TestStagedProgramsRunOnOtherHostsAndAreRemoved(t *testing.T) {
	dir := t.TempDir()
	prog := filepath.Join(dir, "prog")
	require.NoError(t, os.WriteFile(prog, []byte("#!/bin/sh\necho $0 $GRUN_RANK\n"), 0o755))
	// The host loses the program once grun has found it.
	f := newFakeHosts(t, "rm -f "+prog)
	o := f.run(t, "a,b", Spec{Programs: []Program{{Path: prog, N: 2, Stage: true}}, Dir: "/"})
	require.ErrorContains(t, o.err, "no such file", "grun copies the file itself")
	require.NoError(t, os.WriteFile(prog, []byte("#!/bin/sh\necho $0 $GRUN_RANK\n"), 0o755))
	f = newFakeHosts(t, "")
	o = f.run(t, "a,b", Spec{Programs: []Program{{Path: prog, N: 2, Stage: true}}, Dir: "/"})
	require.NoError(t, o.err)
	require.Regexp(t, `(?s)^`+f.dir+`/tmp/gopgas-stage-[^/]+/0/prog \d\n`, o.stdout.String())
}

func TestThirtyHostsAreReachedThroughSixteen(t *testing.T) {
	f := newFakeHosts(t, "")
	log := filepath.Join(f.dir, "log")
	f = newFakeHosts(t, "echo $PPID >>"+log)
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("h%02d", i))
	}
	o := f.run(t, strings.Join(names, ","), Spec{Programs: []Program{ranks(30, "report")}})
	require.NoError(t, o.err)
	require.Equal(t, 0, o.ExitCode, o.Summary())
	require.Len(t, o.Reports, 30)
	parents, err := os.ReadFile(log)
	require.NoError(t, err)
	lines := strings.Fields(string(parents))
	require.Len(t, lines, 30)
	mine := slices.DeleteFunc(lines, func(pid string) bool { return pid != fmt.Sprint(os.Getpid()) })
	require.Len(t, mine, fanOut)
}
