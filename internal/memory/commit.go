//go:build linux

package memory

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// commitStep bounds one fallocate: a signal undoes the whole call.
const commitStep = 64 << 20

// maxAllowance bounds how much a process may commit in small pieces between two
// looks at the host's memory, which cost more than the pieces. The processes that
// share Reservations together get a small part of the memory left at the last
// look.
const (
	maxAllowance = 16 << 20
	allowanceDiv = 64
)

// fits returns how much one commit may take: page tables and the small pieces of
// all processes need the rest.
func (h headroom) fits() int64 { return h.bytes - h.bytes/allowanceDiv }

// fit refuses to commit more than fits.
func (h headroom) fit(n int64) error {
	if n <= h.fits() {
		return nil
	}
	return fmt.Errorf("%w: %d MiB more are needed, %s has %d MiB left; %s", ErrNoMemory, n>>20, h.where, h.bytes>>20, advice)
}

// Commit makes the pages of [off, off+n) present, so that no later access can run
// out of memory. Contents do not change. It fails with ErrNoMemory. If it
// foresees the shortage, it takes nothing; otherwise a part of the range may be
// present afterward.
//
// It foresees, from /proc/meminfo and the memory cgroup's limits, the shortage for which the
// kernel would kill a process. It foresees processes that share Reservations together; other
// processes that allocate at the same time can still outrun it.
func (m *Memfd) Commit(off, n int64) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.check(off, n); err != nil || n == 0 {
		return err
	}
	mine, err := m.foresee(off, n)
	if err != nil {
		return fmt.Errorf("memory: committing %d bytes: %w", n, err)
	}
	defer mine.end()
	for end := off + n; off < end; off += commitStep {
		part := min(commitStep, end-off)
		if err := m.commitPart(off, part); err != nil {
			return fmt.Errorf("memory: committing %d bytes: %w", n, err)
		}
		mine.committed(part)
	}
	return nil
}

// check refuses ranges outside of the memfd. Precondition: mu is held.
func (m *Memfd) check(off, n int64) error {
	if m.closed {
		return fmt.Errorf("memory: memfd: %w", driver.ErrClosed)
	}
	if off < 0 || n < 0 || off > m.Size() || n > m.Size()-off {
		return fmt.Errorf("memory: %w: [%d, %d+%d) of %d bytes", driver.ErrInvalid, off, off, n, m.Size())
	}
	return nil
}

// foresee compares the missing bytes with the memory that host and cgroup have left,
// and reserves them.
func (m *Memfd) foresee(off, n int64) (reservation, error) {
	if m.allowance.Add(-n) >= 0 {
		return reservation{}, nil
	}
	mine, left, err := m.reservations.reserve(func(fits int64) int64 {
		if n <= fits {
			return n
		}
		return m.missing(off, n)
	})
	if err == nil {
		m.allowance.Store(min(left.bytes/allowanceDiv/m.reservations.sharers(), maxAllowance))
	}
	return mine, err
}

const advice = "ask for less, raise the limit, or free some: `free -m`, stale files in /dev/shm (`df /dev/shm`), memory.max of the memory cgroup"

// missing counts the bytes of [off, off+n) that have no pages yet.
func (m *Memfd) missing(off, n int64) int64 {
	missing := n
	for end := off + n; off < end; {
		data, err := unix.Seek(m.fd, off, unix.SEEK_DATA)
		if err != nil || data >= end {
			break
		}
		hole, err := unix.Seek(m.fd, data, unix.SEEK_HOLE)
		if err != nil {
			break
		}
		hole = min(hole, end)
		missing -= hole - data
		off = hole
	}
	return missing
}

// commitPart allocates the pages, then maps them here so that the first accesses
// do not fault. fallocate reports a shortage as an error. Some kernels kill a
// process that runs short while it populates, and kernels before 5.14 cannot
// populate.
func (m *Memfd) commitPart(off, n int64) error {
	err := again(func() error { return unix.Fallocate(m.fd, 0, off, n) })
	if errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("%w: %w; %s", ErrNoMemory, err, advice)
	}
	if err != nil {
		return err
	}
	first := off &^ int64(os.Getpagesize()-1)
	err = again(func() error { return unix.Madvise(m.mem[first:off+n], unix.MADV_POPULATE_WRITE) })
	switch {
	case errors.Is(err, unix.EINVAL):
		return nil
	case errors.Is(err, unix.ENOMEM), errors.Is(err, unix.EFAULT):
		return fmt.Errorf("%w: %w; %s", ErrNoMemory, err, advice)
	}
	return err
}

// again repeats f while signals interrupt it.
func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Punch gives the whole pages within [off, off+n) back to the host. The range
// reads as zero afterward; commit it again before using it.
func (m *Memfd) Punch(off, n int64) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.check(off, n); err != nil || n == 0 {
		return err
	}
	const mode = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	if err := again(func() error { return unix.Fallocate(m.fd, mode, off, n) }); err != nil {
		return fmt.Errorf("memory: giving back %d bytes: %w", n, err)
	}
	return nil
}
