//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// newCgroup makes a cgroup with a limit, of whichever version has the controller
// here, and returns its directory. It skips the test where that is not allowed.
func newCgroup(t *testing.T, controller string, limits map[string]string) string {
	const root = "/sys/fs/cgroup"
	parent := filepath.Join(root, controller)
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		parent = root
		os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+"+controller), 0)
	}
	dir := filepath.Join(parent, "gopgas-test-"+uuid.NewString())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("this test needs a cgroup of its own:", err)
	}
	t.Cleanup(func() {
		eventually(t, "the end of the cgroup", func() bool { return os.Remove(dir) == nil })
	})
	written := 0
	for file, limit := range limits {
		if os.WriteFile(filepath.Join(dir, file), []byte(limit), 0) == nil {
			written++
		}
	}
	if written == 0 {
		t.Skip("this test needs the cgroup controller", controller)
	}
	return dir
}

// within has the job run in a cgroup.
func (j *job) within(dir string) {
	j.cmd.Args = append([]string{"sh", "-c", `echo $$ >$0/cgroup.procs && exec "$@"`, dir}, j.cmd.Args...)
	j.cmd.Path = "/bin/sh"
}

func TestRanksThatExceedTheirCgroupGetAnErrorThatNamesIt(t *testing.T) {
	const limit = 256
	bytes := strconv.Itoa(limit << 20)
	dir := newCgroup(t, "memory", map[string]string{"memory.max": bytes, "memory.swap.max": "0", "memory.limit_in_bytes": bytes})
	program := built(t, "memory")
	for i, args := range [][]string{{"windows", "70"}, {"windows", "200"}, {"buffers", "40"}} {
		for k, provider := range []string{"shm", "tcp"} {
			if (i+k)%2 == 1 && !testwatch.Soak() {
				continue // another size runs on this provider
			}
			j := newJob(t, append([]string{"-n", "4", "--provider", provider, program}, args...)...)
			j.within(dir)
			require.Equal(t, 0, j.run(t), j.stderr.String())
			said := strings.Split(strings.TrimSpace(j.stdout.String()), "\n")
			require.Len(t, said, 4)
			for _, line := range said {
				require.Regexp(t, `^exhausted=true: .*\d+ MiB more are needed, memory cgroup \S+ \(limit 256 MiB\) has \d+ MiB left`, line)
			}
		}
	}
}

func TestRanksShareTheCoresThatTheirCgroupAllows(t *testing.T) {
	dir := newCgroup(t, "cpu", map[string]string{"cpu.max": "100000 100000", "cpu.cfs_quota_us": "100000"})
	j := newJob(t, "-n", "2", "sh", "-c", "echo $GRUN_LOCAL_CORES $GOMAXPROCS")
	j.cmd.Env = slices.DeleteFunc(j.cmd.Env, func(v string) bool { return strings.HasPrefix(v, "GOMAXPROCS=") })
	j.within(dir)
	require.Equal(t, 0, j.run(t), j.stderr.String())
	require.Equal(t, "1 2\n1 2\n", j.stdout.String())
}
