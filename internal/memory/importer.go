//go:build linux

package memory

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// An Importer maps memory of other processes. It remembers that the system refuses copies of their
// descriptors, and tries no more: Yama logs each try. Its zero value is ready. Its methods may be called
// from any goroutine.
type Importer struct {
	refused atomic.Bool
}

// Import maps the memfd, or the device's memory, that is descriptor fd of process pid. It refuses
// any other descriptor, a memfd that is not sealed against resizing (ErrUnsealed), and memory
// smaller than size (ErrTooSmall). It maps all of it and keeps no
// descriptor.
func (i *Importer) Import(pid, fd int, size int64) (*Imported, error) {
	if pid <= 0 || fd < 0 || size < 0 {
		return nil, fmt.Errorf("memory: %w: descriptor %d of process %d, %d bytes", driver.ErrInvalid, fd, pid, size)
	}
	mine, st, err := i.open(pid, fd, duplicate)
	if err == nil {
		var imp *Imported
		if imp, err = importFD(mine, st, size); err == nil {
			return imp, nil
		}
	}
	return nil, fmt.Errorf("memory: importing descriptor %d of process %d: %w", fd, pid, err)
}

// open opens descriptor fd of process pid through first. It opens the path if that fails, or failed by a
// refusal before.
func (i *Importer) open(pid, fd int, first opener) (int, unix.Stat_t, error) {
	if !i.refused.Load() {
		mine, st, err := first(pid, fd)
		if err == nil {
			return mine, st, nil
		}
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
			i.refused.Store(true)
		}
	}
	return openMemory(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
}

// An opener returns this process's own descriptor for descriptor fd of process pid.
type opener func(pid, fd int) (int, unix.Stat_t, error)

// duplicate returns a copy of descriptor fd of process pid, if it is one of memory. It looks no path up and
// opens nothing, and so takes a quarter of the time of openMemory. It needs more rights: kernels
// before 5.6, Yama and filters of containers refuse it.
func duplicate(pid, fd int) (int, unix.Stat_t, error) {
	var st unix.Stat_t
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, st, err
	}
	defer closeFD(process)
	mine, err := unix.PidfdGetfd(process, fd, 0)
	if err != nil {
		return -1, st, err
	}
	if err = unix.Fstat(mine, &st); err == nil {
		err = checkMemory(&st)
	}
	if err != nil {
		closeFD(mine)
		return -1, st, err
	}
	return mine, st, nil
}
