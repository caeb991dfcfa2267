//go:build linux

package launcher

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

func TestExitCodeIsThatOfTheFirstFailingRank(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	require.NoError(t, err)
	for _, c := range []struct {
		name, script string
		code         int
		summary      string
	}{
		{"all well", "exit 0", 0, ""},
		{"one fails", "test $GRUN_RANK = 1 && exit 7; sleep 100", 7, "rank 1 on " + host + " exited with code 7"},
		{"signal", "test $GRUN_RANK = 0 && kill -SEGV $$; sleep 100", 139, "rank 0 on " + host + " died of SIGSEGV"},
		{"large code", "test $GRUN_RANK != 2 || exit 255", 255, "rank 2 on " + host + " exited with code 255"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // ranks wait for the end of the grace
			o := run(t, Spec{Programs: sh(3, c.script)})
			require.NoError(t, o.err)
			require.Equal(t, c.code, o.ExitCode)
			require.Regexp(t, "^"+regexp.QuoteMeta(c.summary)+"$", o.Summary())
		})
	}
}

func TestSummaryCountsTheFailuresAfterTheFirst(t *testing.T) {
	o := run(t, Spec{Programs: []Program{ranks(3, "two fail in turn")}, Grace: testwatch.Patience()})
	require.NoError(t, o.err)
	require.Equal(t, 7, o.ExitCode)
	require.Regexp(t, `^rank 1 on \S+ exited with code 7 \(first of 2 failures\)$`, o.Summary())
}

func TestProgramThatCannotRun(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o644))
	garbage := filepath.Join(dir, "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte{0x7f, 'E', 'L', 'F', 0}, 0o755))
	for path, code := range map[string]int{
		"no-such-program-anywhere":   ExitNotFound,
		filepath.Join(dir, "absent"): ExitNotFound,
		plain:                        ExitNotExecutable,
		dir:                          ExitNotExecutable,
		garbage:                      ExitNotExecutable,
	} {
		o := run(t, Spec{Programs: []Program{{Path: path, N: 2}}})
		var start *StartError
		require.ErrorAs(t, o.err, &start, path)
		require.Equal(t, code, o.ExitCode, path)
	}
}

func TestAProgramThatCannotRunEndsTheOtherPrograms(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte{0x7f, 'E', 'L', 'F', 0}, 0o755))
	o := run(t, Spec{Programs: append(sh(3, "sleep 100"), Program{Path: garbage, N: 1})})
	require.Equal(t, ExitNotExecutable, o.ExitCode)
}

func TestImpossibleSpecsAreRefused(t *testing.T) {
	for _, spec := range []Spec{
		{},
		{Programs: sh(0, "true")},
		{Programs: sh(2, "true"), StdinTo: 2},
		{Programs: sh(2, "true"), StdinTo: -3},
	} {
		o := run(t, spec)
		require.ErrorIs(t, o.err, ErrSpec)
		require.Equal(t, ExitInternal, o.ExitCode)
	}
}

func TestTimeoutEndsTheJobWith124(t *testing.T) {
	o := run(t, Spec{Programs: sh(2, "sleep 100"), Timeout: 50 * time.Millisecond})
	require.NoError(t, o.err)
	require.Equal(t, ExitTimeout, o.ExitCode)
	require.True(t, o.TimedOut)
	require.Empty(t, o.Failures)
}

func TestRanksThatIgnoreSIGTERMAreKilled(t *testing.T) {
	o := run(t, Spec{
		Programs: sh(3, "trap '' TERM; test $GRUN_RANK = 1 && exit 7; while :; do sleep 1; done"),
		Grace:    -1, KillWait: 50 * time.Millisecond,
	})
	require.Equal(t, 7, o.ExitCode)
	require.Len(t, o.Failures, 1)
}

func TestStoppedRanksAreKilled(t *testing.T) {
	o := run(t, Spec{
		Programs: sh(2, "test $GRUN_RANK = 1 && sleep 0.2 && exit 7; kill -STOP $$"),
		Grace:    -1, KillWait: 50 * time.Millisecond,
	})
	require.Equal(t, 7, o.ExitCode)
}

func TestSurvivorsHearOfADeathAtOnceAndMayEndByThemselves(t *testing.T) {
	o := run(t, Spec{Programs: []Program{ranks(4, "one dies")}, Grace: testwatch.Patience()})
	require.NoError(t, o.err)
	require.Equal(t, 137, o.ExitCode)
	require.Equal(t, Failure{Rank: 3, Host: o.Failures[0].Host, Code: 137, Signal: syscall.SIGKILL, Reason: "died of SIGKILL"}, o.Failures[0])
	require.Len(t, o.Failures, 4)
	for _, line := range o.stdout.lines() {
		require.Equal(t, "dead 3: died of SIGKILL on "+o.Failures[0].Host, line)
	}
}

func TestKeepGoingLetsSurvivorsFinish(t *testing.T) {
	o := run(t, Spec{Programs: []Program{ranks(3, "one dies, the rest leave")}, KeepGoing: true, Grace: -1})
	require.Equal(t, 9, o.ExitCode)
	require.Len(t, o.Failures, 1)
}

func TestRankThatExitsWithoutCloseHasFailed(t *testing.T) {
	o := run(t, Spec{Programs: []Program{ranks(1, "forget close")}})
	require.Equal(t, 1, o.ExitCode)
	require.Equal(t, "exited without Close", o.Failures[0].Reason)
}

func TestRankThatNeverJoinsIsAnnounced(t *testing.T) {
	for name, programs := range map[string][]Program{
		"exits later": append(sh(1, "sleep 0.3"), ranks(1, "wait for news")),
		"exits first": append(sh(1, "exit 0"), ranks(1, "wait for news")),
	} {
		t.Run(name, func(t *testing.T) {
			o := run(t, Spec{Programs: programs, Grace: testwatch.Patience()})
			require.Equal(t, 1, o.ExitCode)
			require.Equal(t, 0, o.Failures[0].Rank)
			require.Contains(t, o.Failures[0].Reason, "without ever calling runtime.Init")
			require.Contains(t, o.stdout.String(), "dead 0: exited without ever calling runtime.Init")
		})
	}
}

func TestRankWhoseProgramDiedWithinAShellIsDead(t *testing.T) {
	heard := filepath.Join(t.TempDir(), "heard")
	wrapped := ranks(1, "forget close")
	wrapped.Path, wrapped.Args = "sh", []string{"-c", "/proc/" + strconv.Itoa(os.Getpid()) + "/exe; until test -e " + heard + "; do sleep 0.01; done; exit 6"}
	out := &onLine{want: "dead 0", n: 1, then: func() { require.NoError(t, os.WriteFile(heard, nil, 0o600)) }}
	o := run(t, Spec{Programs: []Program{wrapped, ranks(1, "wait after all joined")}, Stdout: out, Grace: testwatch.Patience()})
	require.Equal(t, 6, o.ExitCode)
	require.Equal(t, Failure{Rank: 0, Host: o.Failures[0].Host, Code: 6, Reason: "lost its connection to grun without Close"}, o.Failures[0])
	require.Contains(t, out.String(), "dead 0: lost its connection")
}

func TestAbortNamesTheRankThatGaveUp(t *testing.T) {
	o := run(t, Spec{Programs: []Program{ranks(3, "abort")}, Grace: testwatch.Patience()})
	require.Equal(t, 5, o.ExitCode)
	require.Equal(t, "aborted: wrong input", o.Failures[0].Reason)
	require.Equal(t, 1, o.Failures[0].Rank)
	require.Equal(t, []string{"abort 1: wrong input", "abort 1: wrong input"}, o.stdout.lines())
}

func TestReportsReachTheLauncher(t *testing.T) {
	o := run(t, Spec{Programs: []Program{ranks(4, "report")}})
	require.Equal(t, 0, o.ExitCode)
	seen := map[int]string{}
	for _, r := range o.Reports {
		require.Equal(t, "stats", r.Name)
		seen[r.Rank] = string(r.Payload)
	}
	require.Equal(t, map[int]string{0: `{"rank":0}`, 1: `{"rank":1}`, 2: `{"rank":2}`, 3: `{"rank":3}`}, seen)
}
