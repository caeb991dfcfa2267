//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// fakeSSH makes a script in place of ssh, which runs the shells of all hosts here. Its
// agents have the job's mark.
func fakeSSH(t *testing.T) string {
	dir := t.TempDir()
	script := filepath.Join(dir, "ssh")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tmp"), 0o700))
	text := fmt.Sprintf("#!/bin/sh\nfor line; do :; done\nexport XDG_CACHE_HOME=%[1]s TMPDIR=%[1]s/tmp\nexec sh -c \"$line\"\n", dir)
	require.NoError(t, os.WriteFile(script, []byte(text), 0o755))
	return script
}

func TestSpellingsOfHostsPlaceRanks(t *testing.T) {
	t.Setenv(bootstrap.EnvSSH, fakeSSH(t))
	file := filepath.Join(t.TempDir(), "hostfile")
	require.NoError(t, os.WriteFile(file, []byte("a slots=2\nb:2\n"), 0o644))
	for _, args := range [][]string{
		{"-H", "a:2,b:2"}, {"-host", "a:2,b:2"}, {"--host=a:2,b:2"}, {"-hostfile", file}, {"--hostfile", file, "-n", "4"},
		{"-H", "a,b", "--oversubscribe", "-np", "4", "--map-by", "slot"}, {"-H", "a:9,b:9", "-n", "4", "-map-by", "node"},
	} {
		code, stdout, stderr := grun(t, append(args, "sh", "-c", "echo $GRUN_HOST")...)
		require.Equal(t, 0, code, "%v: %s", args, stderr)
		require.ElementsMatch(t, []string{"a", "a", "b", "b"}, strings.Fields(stdout), "%v", args)
	}
}

func TestMistakesInHostsAreNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hostfile")
	require.NoError(t, os.WriteFile(file, []byte("a\nb slots=x\n"), 0o644))
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-H", "a:x", "true"}, 2, `"x" slots`},
		{[]string{"--hostfile", file, "true"}, 2, file + ":2:"},
		{[]string{"--hostfile", file, "-H", "a", "true"}, 2, "give one of them"},
		{[]string{"-H", "a", "--map-by", "socket", "true"}, 2, "choose slot or node"},
		{[]string{"-H", "a,b", "-n", "3", "true"}, 70, "--oversubscribe"},
		{[]string{"-H", "a", "--ssh-cmd", "/no/such/ssh", "true"}, 70, "host a: start /no/such/ssh"},
		{[]string{"agent"}, 2, "grun itself starts its agents"},
		{[]string{"agent", "x", "y"}, 2, "grun itself starts its agents"},
	} {
		code, _, stderr := grun(t, c.args...)
		require.Equal(t, c.code, code, "%v: %s", c.args, stderr)
		require.Contains(t, stderr, c.says)
	}
}

func TestPackagesRunOnSeveralHosts(t *testing.T) {
	t.Setenv(bootstrap.EnvSSH, fakeSSH(t))
	j := newJob(t, "-H", "a:2,b,c:3", "--tag-output", "../../examples/hello")
	require.Equal(t, 0, j.run(t), j.stderr.String())
	for rank, host := range []string{"a", "a", "b", "c", "c", "c"} {
		require.Contains(t, j.stdout.String(), fmt.Sprintf("[%d@%s] rank %d of 6: rank %d was here\n", rank, host, rank, (rank+5)%6))
	}
}

func TestStatisticsNameTheProvidersBetweenHosts(t *testing.T) {
	t.Setenv(bootstrap.EnvSSH, fakeSSH(t))
	code, _, stderr := grun(t, "-H", "a:2,b", "--stats", "../../examples/hello")
	require.Equal(t, 0, code, stderr)
	require.Regexp(t, `(?m)^ +0 +1 +shm`, stderr)
	require.Regexp(t, `(?m)^ +1 +2 +tcp`, stderr)
}

func TestKilledGrunLeavesNoProcessOnOtherHosts(t *testing.T) {
	ssh := fakeSSH(t)
	t.Setenv(bootstrap.EnvSSH, ssh)
	prog := filepath.Join(t.TempDir(), "prog")
	require.NoError(t, os.WriteFile(prog, []byte("#!/bin/sh\n"+family), 0o755))
	j := newJob(t, "-H", "a:2,b:2", "--stage", prog)
	out := startWatched(t, j)
	out.await(t, "ready", 4)
	require.NoError(t, j.cmd.Process.Kill())
	j.cmd.Wait()
	gone(t, j)
	goneFrom(t, ssh)
	out.awaitEnd(t)
}

// TestAgentsEndWhenGrunIsSilentForThePeerTimeout stops grun alone, which then does not answer.
func TestAgentsEndWhenGrunIsSilentForThePeerTimeout(t *testing.T) {
	ssh := fakeSSH(t)
	t.Setenv(bootstrap.EnvSSH, ssh)
	j := newJob(t, "-H", "a:2,b", "--peer-timeout", "2s", "sh", "-c", family)
	out := startWatched(t, j)
	out.await(t, "ready", 3)
	require.NoError(t, j.cmd.Process.Signal(syscall.SIGSTOP))
	goneFrom(t, ssh)
	require.NoError(t, j.cmd.Process.Signal(syscall.SIGCONT))
	j.cmd.Wait()
	require.Equal(t, 70, j.cmd.ProcessState.ExitCode(), j.stderr.String())
	require.Contains(t, j.stderr.String(), "was lost with its host")
	gone(t, j)
	out.awaitEnd(t)
}

// goneFrom waits until the hosts of a fake ssh have no agent, guardian or copied program.
func goneFrom(t *testing.T, ssh string) {
	dir := filepath.Dir(ssh)
	eventually(t, "the end of agents, guardians and copies of programs", func() bool {
		exes, _ := filepath.Glob("/proc/[0-9]*/exe")
		running := slices.ContainsFunc(exes, func(link string) bool {
			exe, _ := os.Readlink(link)
			return strings.HasPrefix(exe, dir)
		})
		left, err := os.ReadDir(filepath.Join(dir, "tmp"))
		return err == nil && len(left) == 0 && !running
	})
}

// TestRandomKillsLeaveNothingOnOtherHosts kills a process of the job, agents and guardians included,
// and then grun, at random moments.
func TestRandomKillsLeaveNothingOnOtherHosts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	ssh := fakeSSH(t)
	t.Setenv(bootstrap.EnvSSH, ssh)
	prog := filepath.Join(t.TempDir(), "prog")
	require.NoError(t, os.WriteFile(prog, []byte("#!/bin/sh\n"+family), 0o755))
	for range testwatch.ShortOr(6, 40) {
		j := newJob(t, "-H", "a:2,b,localhost", "--grace", "10ms", "--kill-wait", "10ms", "--stage", prog)
		require.NoError(t, j.cmd.Start())
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
		if random.IntN(2) == 0 {
			killOne(j, random)
			time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
		}
		j.cmd.Process.Kill()
		j.cmd.Wait()
		gone(t, j)
		goneFrom(t, ssh)
	}
}

// TestTheReadmesHostsWork runs the commands of the README's block about several hosts.
func TestTheReadmesHostsWork(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	lines := regexp.MustCompile(`(?m)^    grun (-H|--hostfile) .*$`).FindAllString(string(readme), -1)
	require.GreaterOrEqual(t, len(lines), 4)
	ssh := fakeSSH(t)
	hosts := filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.WriteFile(hosts, []byte("host1 slots=2\nhost2:2\n"), 0o644))
	for _, line := range lines {
		command, _, _ := strings.Cut(line, "#")
		words := strings.Fields(strings.NewReplacer("./examples/hello", "../../examples/hello", " hosts ", " "+hosts+" ", "./prog", "true",
			`"ssh -p 2222"`, ssh).Replace(command))
		t.Setenv(bootstrap.EnvSSH, ssh)
		code, _, stderr := grun(t, words[1:]...)
		require.Equal(t, 0, code, "%s: %s", line, stderr)
	}
}
