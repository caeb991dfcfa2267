//go:build linux

package agent

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/launcher/internal/wire"
	"golang.org/x/sys/unix"
)

// sweepPause is the time that killed processes get to go away before the next
// look.
const sweepPause = 2 * time.Millisecond

// A jobName finds the processes and files that one agent started. Two agents of a job
// may share a machine.
type jobName struct {
	ID   string `json:"id"`
	Host string `json:"host"`
	Dir  string `json:"dir"` // of programs that grun sent; may not exist
}

func nameOf(plan wire.Plan) jobName { return jobName{plan.JobID, plan.Host, stageDir(plan)} }

func (n jobName) String() string {
	text, _ := json.Marshal(n) // strings only
	return string(text)
}

func parseJobName(text string) (n jobName, ok bool) {
	return n, json.Unmarshal([]byte(text), &n) == nil && n.ID != ""
}

// execWait bounds the wait for processes in exec, whose environment cannot be read. A process
// may also have removed its environment and its arguments.
const execWait = time.Second

// sweep removes the job's programs and kills every process whose environment names the
// job, until two looks in a row find none. In one look it can miss the child of a process
// that it has passed. It gives up at the deadline.
func sweep(job jobName, deadline time.Time) {
	defer os.RemoveAll(job.Dir) //nolint:errcheck // it may not exist
	patience := time.Now().Add(execWait)
	for clean := 0; clean < 2 && time.Now().Before(deadline); {
		found, unknown := killJob(job)
		switch {
		case found > 0:
			patience = time.Now().Add(execWait)
		case unknown == 0 || time.Now().After(patience):
			clean++
			continue
		}
		clean = 0
		time.Sleep(sweepPause)
	}
}

// killJob kills the processes of a job that it finds and returns their number, and that of
// processes that may be of the job.
func killJob(job jobName) (found, unknown int) {
	pids, unknown := processesOf(job)
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // gone
		}
		// The kernel may have reused the number since processesOf, but it cannot
		// while the descriptor is open: look again.
		if known, ours := belongs(pid, job); known && ours {
			found++
			unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) //nolint:errcheck // gone is fine
		}
		unix.Close(fd) //nolint:errcheck // it is a valid descriptor
	}
	return found, unknown
}

// processesOf lists the living processes of a job, without this one, and returns the number
// of those that may be of the job.
func processesOf(job jobName) (pids []int, unknown int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		switch known, ours := belongs(pid, job); {
		case !known:
			unknown++
		case ours:
			pids = append(pids, pid)
		}
	}
	return pids, unknown
}

// belongs looks for the names of job and host in a process's environment. A process in exec has no
// environment for a moment; then known is false. Zombies have no environment any more, and this
// process cannot read those of other users.
func belongs(pid int, job jobName) (known, ours bool) {
	proc := "/proc/" + strconv.Itoa(pid)
	env, err := os.ReadFile(proc + "/environ")
	if err != nil {
		return true, false
	}
	if len(env) == 0 {
		return !inExec(proc), false
	}
	vars := bytes.Split(env, []byte{0})
	for _, entry := range []string{bootstrap.EnvJobID + "=" + job.ID, bootstrap.EnvHost + "=" + job.Host} {
		if !slices.ContainsFunc(vars, func(v []byte) bool { return string(v) == entry }) {
			return true, false
		}
	}
	return true, true
}

// inExec reports whether a process without an environment has no arguments either, but an
// executable. Threads of the kernel and zombies have none of the three.
func inExec(proc string) bool {
	line, err := os.ReadFile(proc + "/cmdline")
	if err != nil || len(line) > 0 {
		return false
	}
	_, err = os.Readlink(proc + "/exe")
	return err == nil
}
