//go:build linux

package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/tools/hosts"
)

// A cluster has hosts that ssh reaches from a laptop, on which grun runs. No host can open
// a connection to the laptop.
type cluster struct {
	testing.TB
	bed    *hosts.Testbed
	lan    *hosts.Network
	laptop *hosts.Host
	hosts  []*hosts.Host // host1, host2 and so on
	config string        // for ssh -F
	grun   string        // its path
}

// newCluster makes n hosts, and a laptop with a grun.
func newCluster(t testing.TB, n int, grun string) *cluster {
	t.Helper()
	c := &cluster{TB: t, bed: hosts.New(t, 1), grun: grun}
	c.lan = c.bed.Network(hosts.IPv4)
	c.laptop = c.bed.Host("laptop")
	c.lan.Join(c.laptop)
	for i := range n {
		h := c.bed.Host(fmt.Sprintf("host%d", i+1))
		c.lan.Join(h)
		c.lan.OneWay(h, c.laptop, hosts.Conditions{NoConnect: true})
		c.hosts = append(c.hosts, h)
	}
	c.config = c.bed.SSH()
	return c
}

// start starts grun on the laptop.
func (c *cluster) start(args ...string) *job {
	c.Helper()
	return c.run(exec.Command(c.grun, args...))
}

// runaway is a rank that runs all operations, and has a child that outlives it.
const runaway = "#!/bin/sh\n(setsid sleep 1000 >/dev/null 2>&1 &)\nexec %s\n"

// endless returns the arguments of grun for ranks that run all operations until the test ends
// grun's input. Flags have grun copy their program to the hosts.
func endless(t testing.TB) []string {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "prog")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, runaway, exe), 0o755))
	return []string{"--stage", "--stdin", "all", "-x", envProgram + "=all", path}
}

// allReady waits until all operations of n ranks run.
func (j *job) allReady(n int) {
	j.Helper()
	for range n {
		j.await(j.ranks[0], "ready")
	}
}

// shell runs a line in a shell on the laptop, which has grun on its PATH.
func (c *cluster) shell(dir, line string) *job {
	c.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = dir
	return c.run(cmd)
}

// run starts a command on the laptop, whose ssh knows the hosts.
func (c *cluster) run(cmd *exec.Cmd) *job {
	c.Helper()
	bin := c.TempDir()
	ssh, err := exec.LookPath("ssh")
	require.NoError(c, err)
	script := fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", ssh, c.config)
	require.NoError(c, os.WriteFile(filepath.Join(bin, "ssh"), []byte(script), 0o755))
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GRUN_") })
	cmd.Env = append(cmd.Env, "PATH="+bin+":"+filepath.Dir(c.grun)+":"+os.Getenv("PATH"), "GRUN_HEAP=64MiB")
	j := &job{TB: c, spec: spec{place: append(slices.Clone(c.hosts), c.laptop)}}
	j.ranks = []*rank{j.spawn("grun", c.laptop, cmd, func(error) {})}
	return j
}

// exits waits for the end of grun, and returns its exit code: -1 after a signal.
func (j *job) exits() int {
	j.Helper()
	err := j.wait()[0]
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	require.NoError(j, err)
	return 0
}

// leavesNothingSoon waits until no process and no file of the job is left on any host.
func (j *job) leavesNothingSoon() {
	j.Helper()
	for _, h := range j.spec.place {
		for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // no event tells of the ends
			things := left(j, h)
			if len(things) == 0 {
				break
			}
			require.Less(j, time.Since(began), testwatch.Patience(), "left on %s: %q\n%s", h.Name(), things, j.log())
		}
	}
}

// lines returns the lines that grun and its ranks have printed.
func (j *job) lines() []string {
	r := j.ranks[0]
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Split(strings.TrimSpace(r.output.String()), "\n")
}
