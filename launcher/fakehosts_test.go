//go:build linux

package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/launcher/hosts"
	"github.com/gopgas/gopgas/launcher/ssh"
)

// fakeHosts stands for other hosts: a script in place of ssh runs their shells here.
type fakeHosts struct {
	dir     string // of the script, and the caches of all hosts
	backend ssh.Backend
}

// newFakeHosts makes hosts. Each runs before, lines of sh with the host in $host, ahead of its shell.
func newFakeHosts(t *testing.T, before string) *fakeHosts {
	f := &fakeHosts{dir: t.TempDir()}
	script := filepath.Join(f.dir, "ssh")
	text := fmt.Sprintf("#!/bin/sh\nfor word; do host=$line; line=$word; done\nexport XDG_CACHE_HOME=%s/cache TMPDIR=%s/tmp\n%s\nexec sh -c \"$line\"\n",
		f.dir, f.dir, before)
	require.NoError(t, os.Mkdir(filepath.Join(f.dir, "tmp"), 0o700))
	require.NoError(t, os.WriteFile(script, []byte(text), 0o755))
	f.backend = ssh.New(script)
	t.Cleanup(func() {
		f.requireNothingLeft(t)
		for _, pid := range f.processes() { // after a test that has failed
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return f
}

// processes lists the agents of the hosts and their guardians.
func (f *fakeHosts) processes() (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		exe, _ := os.Readlink(dir + "/exe")
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && strings.HasPrefix(exe, f.dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// agents lists the agents without their guardians.
func (f *fakeHosts) agents() (pids []int) {
	for _, pid := range f.processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if words := strings.Split(string(line), "\x00"); len(words) > 1 && words[1] == "agent" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// requireNothingLeft waits until no agent, guardian or copied program is left.
func (f *fakeHosts) requireNothingLeft(t *testing.T) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		staged, err := os.ReadDir(filepath.Join(f.dir, "tmp"))
		require.NoError(t, err)
		if len(f.processes()) == 0 && len(staged) == 0 {
			return
		}
		if time.Since(begin) > testwatch.Patience() {
			t.Fatalf("left behind: processes %v, files %v", f.processes(), staged)
		}
	}
}

// run runs a job on hosts such as a:2,b, and waits until no process of it remains.
func (f *fakeHosts) run(t *testing.T, list string, spec Spec) outcome {
	t.Helper()
	var err error
	spec.Hosts, err = hosts.ReadList(list)
	require.NoError(t, err)
	if spec.Backend == nil {
		spec.Backend = f.backend
	}
	o, mark := runMarked(t, spec)
	// Guardians sweep a host whose agent is killed.
	for begin := time.Now(); len(marked(mark)) > 0; time.Sleep(2 * time.Millisecond) {
		require.Less(t, time.Since(begin), testwatch.Patience(), "processes left behind: %v", marked(mark))
	}
	return o
}

// scriptOf returns the process of the script for a host, which has written it to pids.
func (f *fakeHosts) scriptOf(t *testing.T, host string) int {
	pids, err := os.ReadFile(filepath.Join(f.dir, "pids"))
	require.NoError(t, err)
	match := regexp.MustCompile(`(?m)^(\d+) ` + host + `$`).FindStringSubmatch(string(pids))
	require.NotNil(t, match, string(pids))
	pid, err := strconv.Atoi(match[1])
	require.NoError(t, err)
	return pid
}
