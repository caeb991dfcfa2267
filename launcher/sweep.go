package launcher

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"golang.org/x/sys/unix"
)

// sweepPause is the time that killed processes get to go away before the next
// look.
const sweepPause = 2 * time.Millisecond

// sweep kills every process whose environment names the job, until two looks in a
// row find none. In one look it can miss the child of a process that it has
// passed. It gives up at the deadline.
func sweep(jobID string, deadline time.Time) {
	for clean := 0; clean < 2 && time.Now().Before(deadline); {
		if found := killJob(jobID); found == 0 {
			clean++
			continue
		}
		clean = 0
		time.Sleep(sweepPause)
	}
}

// killJob kills the processes of a job that it finds and returns their number.
func killJob(jobID string) (found int) {
	for _, pid := range processesOf(jobID) {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // gone
		}
		// The kernel may have reused the number since processesOf, but it cannot
		// while the descriptor is open: look again.
		if belongs(pid, jobID) {
			found++
			unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) //nolint:errcheck // gone is fine
		}
		unix.Close(fd) //nolint:errcheck // it is a valid descriptor
	}
	return found
}

// processesOf lists the living processes of a job, without this one.
func processesOf(jobID string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && pid != os.Getpid() && belongs(pid, jobID) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// belongs looks for the job's name in a process's environment. Zombies have no
// environment any more, and this process cannot read those of other users.
func belongs(pid int, jobID string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	entry := []byte(bootstrap.EnvJobID + "=" + jobID)
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(v, entry) {
			return true
		}
	}
	return false
}
