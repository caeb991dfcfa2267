//go:build linux

package faults

import (
	"errors"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/tools/hosts"
)

// A launchFault disturbs grun, its ssh or its agents. The job has two ranks on host1 and
// one on host2.
type launchFault struct {
	name   string
	more   int                      // hosts beside host1 and host2, with a rank each
	before func(c *cluster)         // the start of the job
	impose func(c *cluster, j *job) // once all operations run; nil: the job does not start
	flags  []string                 // of grun
	prog   string                   // "": operations with a child, copied to the hosts

	code  int           // that grun exits with; -1: a signal kills it
	says  string        // a pattern in what grun prints
	bound time.Duration // between the fault, or the start, and the end of grun, on an idle machine
	soak  bool          // only with GOPGAS_SOAK=1
}

var launchFaults = []launchFault{
	{name: "program missing on one host", before: linkOnHost1, prog: "/run/prog", code: 127, bound: time.Second,
		says: `(?m)^grun: cannot start /run/prog: host host2: .*; put it there, or give --stage$`},
	{name: "programs of different versions", before: otherVersionOnHost2, prog: "/run/prog", code: 1, bound: time.Second,
		says: `(?m)^prog: rank 2 cannot join the job: .*version \d+, this program speaks 255: build grun and the programs of all hosts from the same gopgas$`},
	{name: "sshd down", before: endSSHD, code: 70, bound: time.Second,
		says: `(?m)^grun: host host2: no ssh server listens there: start sshd, or give its port in ~/.ssh/config \(ssh: connect to host \S+ port 22: Connection refused\)$`},
	{name: "host key unknown", flags: []string{"--ssh-cmd", "ssh -o UserKnownHostsFile=/dev/null"}, code: 70, bound: time.Second,
		says: `(?m)^grun: host host[12]: its key is not known: connect once with ssh host[12] .*Host key verification failed`},
	{name: "host that never answers", before: cutHost2, flags: []string{"--start-timeout", "2s"}, code: 70, bound: 2 * time.Second,
		says: silent("host2")},
	{name: "one of 32 hosts never answers, a gateway to others", more: 30, before: cutHost2, flags: []string{"--start-timeout", "2s"}, prog: "/bin/true",
		code: 70, bound: 2 * time.Second, says: silent("host2")},
	{name: "one of 32 hosts never answers, behind a gateway", more: 30, before: func(c *cluster) { c.lan.Around(c.hosts[31], down) }, flags: []string{"--start-timeout", "2s"},
		prog: "/bin/true", code: 70, bound: 2 * time.Second, soak: true, says: silent("host32")},
	{name: "host that never answers ssh", before: cutHost2, code: 70, bound: 10 * time.Second, soak: true,
		says: `(?m)^grun: host host2: it does not answer: check that it runs and that a firewall lets ssh pass`},
	{name: "no room for grun", before: smallDir(hosts.HomeDir), code: 70, bound: time.Second,
		says: `(?m)^grun: host host2: no room for grun \(/run/home/.cache/gopgas\): make room there, or set XDG_CACHE_HOME there`},
	{name: "no room for the program", before: smallDir(hosts.TempDir), flags: []string{"--stage"}, prog: "/proc/self/exe", code: 70, bound: time.Second,
		says: `(?m)^grun: host host2: copy of the program: .*no space left on device; make room there, or set TMPDIR there`},
	{name: "agent killed", impose: killOn("/grun-", " agent "), code: 70, bound: time.Second,
		says: `(?m)^grun: rank 2 on host2 was lost with its host: ssh exited with code (137|255)$`},
	{name: "sshd of the session killed", impose: killOn("sshd", "root@notty"), code: 70, bound: time.Second,
		says: `(?m)^grun: rank 2 on host2 was lost with its host: ssh exited with code 255: \S.*$`}, // the text of ssh depends on its next call
	{name: "link of grun cut", impose: func(c *cluster, _ *job) { cutHost2(c) }, flags: []string{"--peer-timeout", "3s"},
		code: 70, bound: 5 * time.Second,
		says: `(?m)^grun: rank 2 on host2 was lost with its host: no answer for 3s`},
	{name: "grun killed", impose: func(_ *cluster, j *job) { _ = j.ranks[0].Signal(syscall.SIGKILL) }, code: -1},
	{name: "grun interrupted", impose: func(_ *cluster, j *job) { _ = j.ranks[0].Signal(syscall.SIGINT) }, code: 130, bound: 2 * time.Second,
		says: `(?m)^grun: rank [0-2] on host[12] died of SIGINT`},
	{name: "rank killed", impose: killOn("faults.test"), code: 137, bound: time.Second,
		says: `(?m)^grun: rank 2 on host2 died of SIGKILL`},
}

// silent returns a pattern of the line for a host that does not answer within 2 seconds. After three,
// which a busy machine may reach first, the kernel reports that it finds no such host.
func silent(host string) string {
	return `(?m)^(grun: )?host ` + host + `: (it was not ready within 2s: check that it answers|the network does not reach it)`
}

// cutHost2 drops all packets between the laptop and host2.
func cutHost2(c *cluster) { c.lan.Between(c.laptop, c.hosts[1], down) }

// endSSHD ends the sshd of host2. It returns when the kernel has closed sshd's port: a busy machine may
// do so after grun has connected.
func endSSHD(c *cluster) {
	killOn("/sshd", "-D")(c, nil)
	port := netip.AddrPortFrom(c.lan.Addr(c.hosts[1], hosts.IPv4), 22)
	require.Eventually(c, func() bool {
		conn, err := c.hosts[1].Dial(port)
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	}, testwatch.Patience(), 10*time.Millisecond)
}

// killOn kills the process of host2 whose command line has all of the words. It waits for
// the end of others, such as a child that sshd forked for a connection.
func killOn(words ...string) func(*cluster, *job) {
	return func(c *cluster, _ *job) {
		var found []int
		require.Eventually(c, func() bool {
			running, err := c.hosts[1].Running()
			found = found[:0]
			for number, line := range running {
				lacks := func(word string) bool { return !strings.Contains(line, word) }
				if !slices.ContainsFunc(words, lacks) {
					found = append(found, number)
				}
			}
			return err == nil && len(found) == 1
		}, testwatch.Patience(), 10*time.Millisecond, "one process with %q", words)
		require.NoError(c, c.hosts[1].Kill(found[0], syscall.SIGKILL))
	}
}

// smallDir leaves a folder of host2 room for 1 MiB.
func smallDir(dir string) func(*cluster) {
	return func(c *cluster) {
		_, err := c.hosts[1].Output("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir)
		require.NoError(c, err)
	}
}

// linkOnHost1 gives the laptop and host1 a program that host2 lacks.
func linkOnHost1(c *cluster) {
	for _, h := range []*hosts.Host{c.laptop, c.hosts[0]} {
		_, err := h.Output("ln", "-s", "/bin/true", "/run/prog")
		require.NoError(c, err)
	}
}

// otherVersionOnHost2 gives all hosts a program, and host2 one that speaks another version of
// the rendezvous' protocol.
func otherVersionOnHost2(c *cluster) {
	source, err := filepath.Abs("../internal/bootstrap/wire.go")
	require.NoError(c, err)
	version := regexp.MustCompile(`(?m)^(\s+version = )\d+$`)
	overlay := edited(c, source, func(text string) string { return version.ReplaceAllString(text, "${1}255") })
	for i, bin := range []string{build(c, "../examples/hello"), build(c, "-overlay", overlay, "../examples/hello")} {
		_, err := c.hosts[i].Output("ln", "-s", bin+"/hello", "/run/prog")
		require.NoError(c, err)
	}
}

func TestLaunchFaultEndsTheJobOnEveryHost(t *testing.T) {
	need(t)
	dir := build(t, "../cmd/grun")
	for _, f := range launchFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			if f.soak && !testjob.Soak() {
				t.Skip("takes long: set GOPGAS_SOAK=1")
			}
			c := newCluster(t, 2+f.more, dir+"/grun")
			if f.before != nil {
				f.before(c)
			}
			began := time.Now()
			list := "host1:2,host2"
			for _, h := range c.hosts[2:] {
				list += "," + h.Name()
			}
			args := append([]string{"-H", list}, f.flags...)
			if f.prog == "" {
				args = append(args, endless(c)...)
			} else {
				args = append(args, f.prog)
			}
			j := c.start(args...)
			if f.impose != nil {
				j.allReady(3)
				for _, h := range c.hosts {
					require.NotEmpty(t, left(t, h), "on host %s while the job runs", h.Name())
				}
				began = time.Now()
				f.impose(c, j)
			}
			code := j.exits()
			took := time.Since(began)
			t.Logf("exit code %d after %v: %s", code, took.Round(10*time.Millisecond), strings.Join(j.linesOfGrun(), "\n"))
			require.Equal(t, f.code, code, j.log())
			require.Regexp(t, f.says, strings.Join(j.lines(), "\n"))
			require.Less(t, took, f.bound+testwatch.Patience(), j.log())
			j.leavesNothingSoon()
		})
	}
}

// linesOfGrun returns the lines that grun itself printed.
func (j *job) linesOfGrun() []string {
	return slices.DeleteFunc(j.lines(), func(line string) bool { return !strings.HasPrefix(line, "grun: ") })
}
