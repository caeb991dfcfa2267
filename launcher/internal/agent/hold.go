//go:build linux

package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/google/uuid"

	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// A hold is a lock on a directory for programs. The kernel ends it with the agent, however the
// agent ends. The zero hold holds nothing.
type hold struct{ *os.File }

// holdWait bounds the wait for a sweep that has the directory for a moment.
const holdWait = time.Second

// holdStage makes the directory of a plan and holds it. A sweep between the two may remove the
// directory; then this agent makes another one. On a file system without such locks the agent
// holds nothing, and no sweep removes the directory.
func holdStage(plan wire.Plan) (h hold, err error) {
	dir := stageDir(plan)
	for deadline := time.Now().Add(holdWait); ; time.Sleep(sweepPause) {
		if err = os.MkdirAll(dir, 0o700); err != nil {
			return hold{}, stageError(err)
		}
		h, err = holdDir(dir)
		switch {
		case err == nil && h.has(dir):
			return h, nil
		case err == nil:
			h.release()
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist):
			return hold{}, nil
		}
		if time.Now().After(deadline) {
			return hold{}, stageError(&fs.PathError{Op: "lock", Path: dir, Err: unix.EWOULDBLOCK})
		}
	}
}

// holdDir holds a directory, unless another process does.
func holdDir(dir string) (hold, error) {
	f, err := os.OpenFile(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return hold{}, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return hold{}, err
	}
	return hold{f}, nil
}

// has reports whether the path still names the directory.
func (h hold) has(dir string) bool {
	held, err := h.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(dir)
	return err == nil && os.SameFile(held, named)
}

// release closes the file of a hold, if it has one.
func (h hold) release() {
	if h.File != nil {
		h.Close()
	}
}

// sweepStages removes directories that an agent of this user left on this host. That agent and its
// guardians were killed together, as Slurm kills all processes of a step. Hosts may share
// the file system but not its locks, so directories of other hosts stay.
func sweepStages(host string) {
	entries, _ := os.ReadDir(os.TempDir()) // beside an error it returns the entries so far
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !isStage(entry.Name(), host) || !ownedByUser(info) {
			continue
		}
		dir := filepath.Join(os.TempDir(), entry.Name())
		h, err := holdDir(dir)
		if err != nil {
			continue // an agent holds it, or it is gone
		}
		os.RemoveAll(dir) //nolint:errcheck // the next agent tries again
		h.release()
	}
}

// isStage reports whether a name is that of a directory for programs on the host.
func isStage(name, host string) bool {
	id, ok := strings.CutPrefix(name, stagePrefix)
	if ok {
		id, ok = strings.CutSuffix(id, "-"+filepath.Base(host))
	}
	return ok && uuid.Validate(id) == nil
}

// ownedByUser reports whether a directory is of the user of this process.
func ownedByUser(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(stat.Uid) == os.Geteuid()
}
