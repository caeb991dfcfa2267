//go:build linux

package launcher

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/launcher/ssh"
)

// family is a rank with children that try to get away.
const family = `(setsid sh -c "sleep 1000 & sleep 1000" &) ; sleep 1000 & echo ready; sleep 1000`

func TestKilledAgentIsALostHostAndLeavesNothing(t *testing.T) {
	f := newFakeHosts(t, "")
	out := &onLine{want: "ready", n: 4, then: func() { syscall.Kill(f.agents()[0], syscall.SIGKILL) }}
	o := f.run(t, "a:2,b:2", Spec{Programs: sh(4, family), Stdout: out, Grace: -1, KillWait: 50 * time.Millisecond})
	require.NoError(t, o.err)
	require.Equal(t, ExitInternal, o.ExitCode)
	require.Regexp(t, `^rank (0 on a|2 on b) was lost with its host: .* died of SIGKILL|exited with code 137`, o.Summary())
	require.GreaterOrEqual(t, len(o.Failures), 2)
}

// TestProgramsOfAnAgentThatWasKilledWithItsGuardiansAreSweptByTheNextAgent kills all processes of a
// host together, as Slurm kills those of a step.
func TestProgramsOfAnAgentThatWasKilledWithItsGuardiansAreSweptByTheNextAgent(t *testing.T) {
	f := newFakeHosts(t, "")
	prog := filepath.Join(f.dir, "prog")
	require.NoError(t, os.WriteFile(prog, []byte("#!/bin/sh\necho ready; exec sleep 1000\n"), 0o755))
	out := &onLine{want: "ready", n: 1, then: func() {
		for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			for _, pid := range f.processes() {
				syscall.Kill(pid, sig)
			}
		}
	}}
	o := f.run(t, "a", Spec{Programs: []Program{{Path: prog, N: 1, Stage: true}}, Dir: "/", Stdout: out, Grace: -1})
	require.Equal(t, ExitInternal, o.ExitCode)
	left, err := filepath.Glob(filepath.Join(f.dir, "tmp", "gopgas-stage-*"))
	require.NoError(t, err)
	require.Len(t, left, 1)
	o = f.run(t, "a", Spec{Programs: sh(1, "true")})
	require.NoError(t, o.err)
	require.NoDirExists(t, left[0])
}

func TestKilledSSHIsALostHostAndLeavesNothing(t *testing.T) {
	// As ssh does, the script stays while the agent runs.
	f := newFakeHosts(t, `echo $$ $host >>$(dirname $0)/pids; sh -c "$line"; exit $?`)
	out := &onLine{want: "ready", n: 2, then: func() { syscall.Kill(f.scriptOf(t, "a"), syscall.SIGKILL) }}
	o := f.run(t, "a:2", Spec{Programs: sh(2, family), Stdout: out, Grace: -1, KillWait: 50 * time.Millisecond})
	require.Equal(t, ExitInternal, o.ExitCode)
	require.Regexp(t, `^rank 0 on a was lost with its host: \S+ died of SIGKILL \(first of 2 failures\)$`, o.Summary())
}

func TestRanksOfALostHostAreDeadForSurvivors(t *testing.T) {
	f := newFakeHosts(t, "echo $$ $host >>$(dirname $0)/pids")
	started := func() { syscall.Kill(f.scriptOf(t, "b"), syscall.SIGKILL) } // it has become the agent
	o := f.run(t, "a:2,b", Spec{Programs: []Program{ranks(3, "wait for news")}, Started: started, Grace: testwatch.Patience()})
	require.Equal(t, ExitInternal, o.ExitCode)
	require.Equal(t, 2, o.Failures[0].Rank)
	require.Equal(t, 2, strings.Count(o.stdout.String(), "dead 2: was lost with its host"), o.stdout.String())
}

func TestStoppedAgentIsLostAfterThePeerTimeout(t *testing.T) {
	t.Parallel()
	f := newFakeHosts(t, "")
	out := &onLine{want: "ready", n: 1, then: func() { syscall.Kill(f.agents()[0], syscall.SIGSTOP) }}
	o := f.run(t, "a", Spec{Programs: sh(1, "echo ready; exec sleep 1000"), Stdout: out, PeerTimeout: 2 * time.Second, Grace: -1})
	require.Equal(t, ExitInternal, o.ExitCode)
	require.Contains(t, o.Summary(), "rank 0 on a was lost with its host: no answer for 2s")
}

// TestHostWhoseShellWritesInTheBackgroundIsNamed has a startup file leave a process behind.
func TestHostWhoseShellWritesInTheBackgroundIsNamed(t *testing.T) {
	f := newFakeHosts(t, `(until test -e $(dirname $0)/ready; do sleep 0.01; done; echo You have new mail in /var/mail/me.) &`)
	ready := func() { require.NoError(t, os.WriteFile(filepath.Join(f.dir, "ready"), nil, 0o600)) }
	o := f.run(t, "a", Spec{Programs: sh(1, "exec sleep 1000"), Started: ready, Grace: -1})
	require.Equal(t, ExitInternal, o.ExitCode)
	require.Contains(t, o.Summary(), "bytes that are no message of grun or its agents came from it: a startup file of its shell")
}

func TestHostBehindALostHostIsLostToo(t *testing.T) {
	f := newFakeHosts(t, "echo $$ $host >>$(dirname $0)/pids")
	started := func() { syscall.Kill(f.scriptOf(t, "h1"), syscall.SIGKILL) }
	o := f.run(t, "h[1-17]", Spec{Programs: []Program{ranks(fanOut+1, "wait for news")}, Started: started, Grace: testwatch.Patience()})
	require.Equal(t, ExitInternal, o.ExitCode)
	reasons := map[string]string{}
	for _, failure := range o.Failures {
		reasons[failure.Host] = failure.Reason
	}
	require.Contains(t, reasons, "h1")
	require.Contains(t, reasons["h17"], "host h1 was lost, through which grun reached it")
}

func TestHostsThatAnAgentDoesNotReachAreReachedDirectly(t *testing.T) {
	f := newFakeHosts(t, fmt.Sprintf("test $PPID = %d || exit 255", os.Getpid()))
	o := f.run(t, "h[1-19]", Spec{Programs: []Program{ranks(19, "report")}})
	require.NoError(t, o.err)
	require.Equal(t, 0, o.ExitCode, o.Summary())
	require.Len(t, o.Reports, 19)
}

func TestHostsThatDoNotRespondAreNamed(t *testing.T) {
	t.Parallel()
	f := newFakeHosts(t, `test $host = a || exec sleep 1000`)
	for limit := 2 * time.Second; ; limit *= 2 {
		o := f.run(t, "a,b,c", Spec{Programs: sh(3, "true"), StartTimeout: limit})
		require.ErrorContains(t, o.err, fmt.Sprintf("host b: it was not ready within %v", limit))
		require.ErrorContains(t, o.err, fmt.Sprintf("host c: it was not ready within %v", limit))
		require.Equal(t, ExitInternal, o.ExitCode)
		if !strings.Contains(o.err.Error(), "host a:") {
			return
		}
		require.Less(t, limit, testwatch.Patience(), "host a answers, though later on a busy machine: %v", o.err)
	}
}

func TestLateRanksAreNotedWithoutALimit(t *testing.T) {
	out := &buffer{}
	j := &job{spec: Spec{Stderr: out}, ranks: []*process{{rank: 0, joined: true}, {rank: 1}, {rank: 2}, {rank: 3, ended: true}}}
	j.nameLate()
	require.NoError(t, j.err)
	require.Equal(t, "grun: ranks 1-2 did not call runtime.Init within 1m0s of the first rank, which waits for them; --start-timeout bounds the wait\n", out.String())
}

func TestConnectionsThatWaitForDescriptorsAreNoted(t *testing.T) {
	out := &buffer{}
	j := &job{spec: Spec{Stderr: out}, events: make(chan event, 1)}
	j.hooks().Crowded(&net.OpError{Op: "accept", Err: syscall.EMFILE})
	j.handle(<-j.events)
	require.NoError(t, j.err)
	require.Equal(t, "grun: a rank waits, since grun cannot take its connection: accept: too many open files; raise ulimit -n\n", out.String())
}

func TestHostsThatFailAreNamedWithARemedy(t *testing.T) {
	for name, c := range map[string]struct{ before, want string }{
		"refused":      {`echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255`, "host a: no ssh server listens there"},
		"host key":     {`echo "Host key verification failed." >&2; exit 255`, "host a: its key is not known: connect once with ssh a"},
		"changed key":  {`echo "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @" >&2; echo "Host key verification failed." >&2; exit 255`, "ssh-keygen -R a"},
		"unknown":      {`echo "ssh: Could not resolve hostname $host: Name or service not known" >&2; exit 255`, "host a: its name is unknown"},
		"denied":       {`echo "root@$host: Permission denied (publickey)." >&2; exit 255`, "host a: ssh must log in without a password"},
		"no sh":        {`echo "sh: not found" >&2; exit 127`, "host a: .* exited with code 127: sh: not found: grun needs sh"},
		"nologin":      {`echo "This account is not available."; exit 1`, "host a: .* exited with code 1: This account is not available."},
		"machine":      {`mkdir -p $(dirname $0)/bin; echo "echo Linux vax" >$(dirname $0)/bin/uname; chmod +x $(dirname $0)/bin/uname; PATH=$(dirname $0)/bin:$PATH`, "host a: its machine is Linux vax"},
		"full disk":    {`mkdir -p $(dirname $0)/bin; echo "exit 1" >$(dirname $0)/bin/head; chmod +x $(dirname $0)/bin/head; PATH=$(dirname $0)/bin:$PATH`, "host a: no room for grun"},
		"no directory": {`export XDG_CACHE_HOME=/proc/x TMPDIR=/proc/y`, "host a: no directory of /proc/x/gopgas, /proc/y/gopgas-.* can hold a program"},
		"endless text": {`while :; do echo motd; done`, "host a: its shell writes without end before grun's agent runs, such as .motd"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newFakeHosts(t, c.before).run(t, "a", Spec{Programs: sh(1, "true")})
			require.Error(t, o.err)
			require.Regexp(t, c.want, o.err.Error())
			require.Equal(t, ExitInternal, o.ExitCode)
		})
	}
}

func TestHostReplacesACopyOfGrunThatIsNotWhole(t *testing.T) {
	f := newFakeHosts(t, "")
	once := func() outcome { return f.run(t, "a", Spec{Programs: sh(1, "echo hello")}) }
	require.NoError(t, once().err)
	copies, err := filepath.Glob(filepath.Join(f.dir, "cache", "gopgas", "grun-*"))
	require.NoError(t, err)
	require.Len(t, copies, 1)
	for _, size := range []int64{0, 1 << 20} {
		require.NoError(t, os.Truncate(copies[0], size))
		o := once()
		require.NoError(t, o.err)
		require.Equal(t, "hello\n", o.stdout.String())
	}
}

func TestHostRunsNoGrunFromADirectoryThatOthersControl(t *testing.T) {
	for name, before := range map[string]string{
		"link":            `mkdir -p $dir/theirs; ln -s $dir/theirs $XDG_CACHE_HOME/gopgas; fake $dir/theirs`,
		"written by all":  `mkdir -p $XDG_CACHE_HOME/gopgas; chmod 777 $XDG_CACHE_HOME/gopgas; fake $XDG_CACHE_HOME/gopgas`,
		"sticky, as /tmp": `mkdir -p $XDG_CACHE_HOME/gopgas; chmod 1777 $XDG_CACHE_HOME/gopgas; fake $XDG_CACHE_HOME/gopgas`,
	} {
		t.Run(name, func(t *testing.T) {
			self, err := openExecutable()
			require.NoError(t, err)
			defer self.Close()
			fake := fmt.Sprintf("fake() { echo 'echo theirs >&2' >$1/grun-%[1]s; truncate -s %[2]d $1/grun-%[1]s; chmod 755 $1/grun-%[1]s; }", self.hash, self.size)
			f := newFakeHosts(t, "dir=$(dirname $0); mkdir -p $XDG_CACHE_HOME\n"+fake+"\n"+before)
			o := f.run(t, "a", Spec{Programs: sh(1, "echo hello")})
			require.NoError(t, o.err)
			require.Equal(t, "hello\n", o.stdout.String())
			require.NoError(t, os.RemoveAll(filepath.Join(f.dir, "tmp", fmt.Sprintf("gopgas-%d", os.Getuid()))))
		})
	}
}

func TestMissingSSHIsNamed(t *testing.T) {
	o := newFakeHosts(t, "").run(t, "a", Spec{Programs: sh(1, "true"), Backend: ssh.New("/no/such/ssh -p 1")})
	require.ErrorContains(t, o.err, "host a: start /no/such/ssh")
	require.ErrorContains(t, o.err, "--ssh-cmd")
}

func TestTextOfStartupFilesIsSkipped(t *testing.T) {
	o := newFakeHosts(t, `echo "Welcome to $host"; printf "no line end"`).run(t, "a,b", Spec{Programs: sh(2, "echo hello")})
	require.NoError(t, o.err)
	require.Equal(t, "hello\nhello\n", o.stdout.String())
}

func TestAProgramThatAHostLacksIsNamed(t *testing.T) {
	o := newFakeHosts(t, "").run(t, "a,b", Spec{Programs: []Program{{Path: "/no/such/prog", N: 2}}})
	var start *StartError
	require.ErrorAs(t, o.err, &start)
	require.Equal(t, ExitNotFound, o.ExitCode)
	require.Regexp(t, "host [ab]: .*--stage", o.err.Error())
}

func TestAWorkingDirectoryThatAHostLacksIsNamed(t *testing.T) {
	o := newFakeHosts(t, "").run(t, "a", Spec{Programs: sh(1, "true"), Dir: "/no/such/dir"})
	require.EqualError(t, o.err, "host a: working directory /no/such/dir is no directory there; name another one with --wdir")
}

func TestAProgramThatDoesNotRunOnAnotherHostEndsTheJob(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte{0x7f, 'E', 'L', 'F', 0}, 0o755))
	o := newFakeHosts(t, "").run(t, "a:3,b", Spec{Programs: append(sh(3, "sleep 100"), Program{Path: garbage, N: 1})})
	require.Equal(t, ExitNotExecutable, o.ExitCode)
	require.ErrorContains(t, o.err, "host b: ")
}

func TestVariablesOfGrunAndGoReachOtherHosts(t *testing.T) {
	t.Setenv("GRUN_PROVIDER", "tcp")
	t.Setenv("GOGC", "77")
	t.Setenv("LAUNCHER_TEST_OWN", "1")
	o := newFakeHosts(t, "unset GRUN_PROVIDER GOGC LAUNCHER_TEST_OWN").run(t, "a", Spec{
		Programs: sh(1, `echo $GRUN_PROVIDER $GOGC $WHAT "<$LAUNCHER_TEST_OWN>"`), Env: []string{"WHAT=x"}})
	require.Equal(t, "tcp 77 x <>\n", o.stdout.String())
}

func TestMoreRanksThanSlotsAreRefused(t *testing.T) {
	f := newFakeHosts(t, "")
	o := f.run(t, "a,b", Spec{Programs: sh(3, "true")})
	require.ErrorIs(t, o.err, ErrSpec)
	require.ErrorContains(t, o.err, "--oversubscribe")
	o = f.run(t, "a,b", Spec{Programs: sh(3, "echo $GRUN_HOST"), Oversubscribe: true})
	require.NoError(t, o.err)
	require.ElementsMatch(t, []string{"a", "b", "a"}, o.stdout.lines())
}

func TestHostWithoutDescriptorsEndsTheJob(t *testing.T) {
	lacks := 0
	for limit := 16; limit < 30; limit += 2 {
		o := newFakeHosts(t, fmt.Sprintf("ulimit -n %d", limit)).run(t, "a:2", Spec{Programs: sh(2, "echo hello")})
		if o.err == nil {
			require.Equal(t, "hello\nhello\n", o.stdout.String())
			continue
		}
		lacks++
		require.ErrorContains(t, o.err, "too many open files; raise ulimit -n")
		require.Equal(t, ExitInternal, o.ExitCode)
	}
	require.Positive(t, lacks)
}

func TestCrashOfAnAgentIsQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "\n": "",
		"Connection closed\nby host2\n":                                               ": by host2",
		"motd\nfatal error: out of memory\n\ngoroutine 1 [running]:\ngs 0x0\n":        ": fatal error: out of memory",
		"SIGQUIT: quit\nPC=0x47 m=0\n\ngoroutine 1 [syscall]:\nrax 0x0\ngs     0x0\n": ": SIGQUIT: quit",
	} {
		require.Equal(t, want, quoted(text))
	}
	require.ErrorContains(t, startRemedy(syscall.EMFILE), "ulimit -n")
	require.ErrorContains(t, startRemedy(syscall.ENFILE), "fs.file-max")
	require.ErrorContains(t, startRemedy(syscall.ENOENT), "--ssh-cmd")
}
