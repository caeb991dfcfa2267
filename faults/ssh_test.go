//go:build linux

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/tools/hosts"
)

// examples lists the examples and the arguments that make them short.
var examples = map[string][]string{
	"hello": nil, "heat": nil, "wordcount": {"../docs"}, "pipes": {"../docs"}, "gups": {"-log2", "14"},
	"farmemory": {"-keys", "50", "-ops", "400"}, "http": nil, "kmeans": {"-points", "20000"}, "sgd": {"-steps", "100", "-accuracy", "0.4"},
	"bfs": {"-scale", "7", "-roots", "2"}, "cg": {"-rows", "200"}, "kernels": {"-order", "48", "-iterations", "3"},
	"queue": {"-elements", "100"}, "globalarray": {"-numbers", "200", "-below", "50"}, "devmem": nil,
	"paramserver": {"-hidden", "64,32", "-steps", "60", "-accuracy", "0.5", "-rounds", "2", "-turns", "1"},
}

func TestGrunRunsEveryExampleOnThreeHostsOverSSH(t *testing.T) {
	need(t)
	t.Parallel()
	mains, err := filepath.Glob("../examples/*/main.go")
	require.NoError(t, err)
	dir := build(t, "../cmd/grun", "../examples/...")
	c := newCluster(t, 3, dir+"/grun")
	flags := map[string][]string{"heat": {"--tls"}, "http": {"--stage"}, "paramserver": {"--heap", "512MiB"}}
	ran := 0
	for _, main := range mains {
		name := filepath.Base(filepath.Dir(main))
		args, known := examples[name]
		if !known {
			require.Equal(t, "tutorial", name, "an example without arguments here")
			continue
		}
		ran++
		t.Run(name, func(t *testing.T) {
			all := append([]string{"-H", "host1:2,host2,host3:3", "--stats", "--timeout", "10m"}, flags[name]...)
			j := c.start(append(append(all, filepath.Join(dir, name)), args...)...)
			require.Equal(t, 0, j.exits(), j.log())
			showsSharedMemoryWithinHosts(t, spread(c.hosts, 2, 1, 3), j.lines())
			j.leavesNothingSoon()
		})
	}
	require.Equal(t, len(examples), ran)
}

// TestChecksOfOperationsPassOnThreeHostsOverSSH runs the bodies of other packages' tests, each
// rank on its host: operations of windows, random programs over pipes, and all collective
// calls, against models.
func TestChecksOfOperationsPassOnThreeHostsOverSSH(t *testing.T) {
	need(t)
	t.Parallel()
	dir := build(t, "../cmd/grun")
	c := newCluster(t, 3, dir+"/grun")
	for _, pkg := range []string{"window", "rpipe", "collectives"} {
		t.Run(pkg, func(t *testing.T) {
			binary := filepath.Join(dir, pkg+".test")
			out, err := exec.Command("go", "test", "-c", "-o", binary, "../"+pkg).CombinedOutput()
			require.NoError(t, err, "%s", out)
			j := c.start("-H", "host1:2,host2,host3:3", "--stage", "--stats", "-x", testjob.Variable("on hosts"), "--heap", "256MiB", binary)
			require.Equal(t, 0, j.exits(), j.log())
			showsSharedMemoryWithinHosts(t, spread(c.hosts, 2, 1, 3), j.lines())
			j.leavesNothingSoon()
		})
	}
}

// showsSharedMemoryWithinHosts requires of the table of grun --stats, which lists pairs with
// traffic, that ranks of a host used shm, and others tcp.
func showsSharedMemoryWithinHosts(t *testing.T, place []*hosts.Host, lines []string) {
	t.Helper()
	used := map[string]int{}
	for _, line := range lines {
		var rank, peer int
		var provider string
		if n, _ := fmt.Sscan(line, &rank, &peer, &provider); n < 3 || rank == peer {
			continue
		}
		want := "tcp"
		if place[rank] == place[peer] {
			want = "shm"
		}
		require.Contains(t, provider, want, line)
		used[want]++
	}
	require.NotZero(t, used["tcp"], "%q", lines)
	require.NotZero(t, used["shm"], "%q", lines)
}

// TestCommandsOfTheReadmeReachHostsOverSSH runs each line of the README's block about several
// hosts, in a shell on the laptop. A user of this machine stands in place of me.
func TestCommandsOfTheReadmeReachHostsOverSSH(t *testing.T) {
	need(t)
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	lines := regexp.MustCompile(`(?m)^    grun (-H|--hostfile) .*$`).FindAllString(string(readme), -1)
	require.Len(t, lines, 4)
	want := [][]string{
		{"rank 0 of 4: rank 3 was here", "rank 1 of 4: rank 0 was here", "rank 2 of 4: rank 1 was here", "rank 3 of 4: rank 2 was here"},
		{"[0@host1] rank 0 of 3: rank 2 was here", "[1@host1] rank 1 of 3: rank 0 was here", "[2@host2] rank 2 of 3: rank 1 was here"},
		{"rank 0 of 3: rank 2 was here", "rank 1 of 3: rank 0 was here", "rank 2 of 3: rank 1 was here"},
		{"rank 0 of 4: rank 3 was here", "rank 1 of 4: rank 0 was here", "rank 2 of 4: rank 1 was here", "rank 3 of 4: rank 2 was here"},
	}
	dir := build(t, "../cmd/grun", "../examples/hello")
	require.NoError(t, os.Rename(dir+"/hello", dir+"/prog"))
	require.NoError(t, os.WriteFile(dir+"/hosts", []byte("host1 slots=2\nhost2:2\n"), 0o644))
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	c := newCluster(t, 2, dir+"/grun")
	for i, line := range lines {
		line = strings.NewReplacer("./examples/", root+"/examples/", "me@", "root@").Replace(line)
		j := c.shell(dir, line)
		require.Equal(t, 0, j.exits(), "%s\n%s", line, j.log())
		said := slices.DeleteFunc(j.lines(), func(s string) bool { return strings.HasPrefix(s, "grun: building ") })
		require.ElementsMatch(t, want[i], said, line)
		j.leavesNothingSoon()
	}
}

// TestTwoGrunsUseTheSameHostsAtOnce has both copy grun to hosts that have none. Then it kills
// one, which must not disturb the other job.
func TestTwoGrunsUseTheSameHostsAtOnce(t *testing.T) {
	need(t)
	t.Parallel()
	dir := build(t, "../cmd/grun")
	c := newCluster(t, 2, dir+"/grun")
	args := append([]string{"-H", "host1:2,host2"}, endless(c)...)
	first, second := c.start(args...), c.start(args...)
	first.allReady(3)
	second.allReady(3)
	require.NoError(t, first.ranks[0].Signal(syscall.SIGKILL))
	require.Equal(t, -1, first.exits())
	second.await(second.ranks[0], "round")
	second.finish()
	require.Equal(t, 0, second.exits(), second.log())
	second.leavesNothingSoon()
	for _, h := range c.hosts {
		files, err := h.Files(hosts.HomeDir)
		require.NoError(t, err)
		require.Len(t, files, 1, "one copy of grun, whole")
	}
}

// TestGrunsOfDifferentVersionsUseTheSameHosts starts jobs by two builds of grun. Each copies itself, and
// neither runs the other's copy as its agent.
func TestGrunsOfDifferentVersionsUseTheSameHosts(t *testing.T) {
	need(t)
	t.Parallel()
	dir := build(t, "../cmd/grun", "../examples/hello")
	c := newCluster(t, 2, dir+"/grun")
	for copies, grun := range []string{dir + "/grun", build(t, "-ldflags=-s -X main.other=1", "../cmd/grun") + "/grun"} {
		c.grun = grun
		j := c.start("-H", "host1:2,host2", "--stage", dir+"/hello")
		require.Equal(t, 0, j.exits(), j.log())
		j.leavesNothingSoon()
		files, err := c.hosts[1].Files(hosts.HomeDir)
		require.NoError(t, err)
		require.Len(t, files, copies+1)
	}
}

// TestDifferentBuildsOfTheProgramAreNamed has a program on host2 that was built otherwise than
// that on host1.
func TestDifferentBuildsOfTheProgramAreNamed(t *testing.T) {
	need(t)
	t.Parallel()
	dir := build(t, "../cmd/grun")
	c := newCluster(t, 2, dir+"/grun")
	for i, h := range append([]*hosts.Host{c.laptop}, c.hosts...) {
		program := filepath.Join(dir, fmt.Sprint(i), "prog")
		out, err := exec.Command("go", "build", fmt.Sprintf("-ldflags=-s -X main.unused=%d", max(i, 1)), "-o", program, "../examples/hello").CombinedOutput()
		require.NoError(t, err, "%s", out)
		_, err = h.Output("ln", "-s", program, "/run/prog")
		require.NoError(t, err)
	}
	const line = "gopgas: rank 0 on host1 and rank 2 on host2 run different builds of prog; "
	j := c.start("-H", "host1:2,host2", "/run/prog")
	require.Equal(t, 0, j.exits(), j.log())
	require.Contains(t, strings.Join(j.lines(), "\n"), line)
	j.leavesNothingSoon()
	j = c.start("-H", "host1:2,host2", "--stage", "/run/prog")
	require.Equal(t, 0, j.exits(), j.log())
	require.NotContains(t, strings.Join(j.lines(), "\n"), line)
}
