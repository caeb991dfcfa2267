//go:build linux

package spawn

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// forkPause is the time after which the launcher checks whether a child that it
// starts is stopped.
const forkPause = 50 * time.Millisecond

// Await waits until a child that the launcher starts runs its program. A Ctrl-Z
// may stop the child before that, since it begins in the launcher's process group.
// No other code knows the child yet, so the launcher continues it here, and stops
// it with the other ranks later.
//
//	launcher                child
//	fork       -----------> in the launcher's process group: Ctrl-Z stops it
//	waits                   setpgid
//	goes on    <----------- exec
func Await(started <-chan error) error {
	look := time.NewTicker(forkPause)
	defer look.Stop()
	for {
		select {
		case err := <-started:
			return err
		case <-look.C:
			continueForked()
		}
	}
}

// continueForked continues the children that do not run their program yet: they
// still have the launcher's command line.
func continueForked() {
	mine, err := os.ReadFile("/proc/self/cmdline")
	if err != nil {
		return
	}
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is good
	for _, list := range lists {
		children, _ := os.ReadFile(list) // the thread may have ended
		for _, child := range strings.Fields(string(children)) {
			pid, err := strconv.Atoi(child)
			line, lineErr := os.ReadFile("/proc/" + child + "/cmdline")
			if err == nil && lineErr == nil && bytes.Equal(line, mine) {
				unix.Kill(pid, unix.SIGCONT) //nolint:errcheck // gone is fine
			}
		}
	}
}
