package memory

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// commitStep bounds one fallocate: a signal undoes what the call had done.
const commitStep = 64 << 20

// maxAllowance bounds how much may be committed in small pieces between two looks
// at the host's memory, which cost more than the pieces. The processes that share
// Reservations together get a small part of the memory left at the last look.
const (
	maxAllowance = 16 << 20
	allowanceDiv = 64
)

// fits is how much may be taken at once: page tables and the small pieces of
// everybody need the rest.
func (h headroom) fits() int64 { return h.bytes - h.bytes/allowanceDiv }

// fit refuses more.
func (h headroom) fit(n int64) error {
	if n <= h.fits() {
		return nil
	}
	return fmt.Errorf("%w: %d MiB more are needed, %s has %d MiB left; %s", ErrNoMemory, n>>20, h.where, h.bytes>>20, advice)
}

// Commit makes the pages of [off, off+n) present, so that no later access can
// run out of memory. Contents stay. It fails with ErrNoMemory, before anything
// is taken where the shortage can be foreseen; otherwise a part of the range
// may be present afterwards.
//
// What the kernel would answer by killing a process is foreseen from
// /proc/meminfo and the memory cgroup's limits. Processes that share
// Reservations are foreseen together; others that allocate at the same time can still outrun that.
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

// foresee compares what is missing with what host and cgroup have left, and reserves
// it.
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

// commitPart allocates the pages, then maps them here so that the first
// accesses do not fault. fallocate reports a shortage properly; populating
// alone would be killed by it on some kernels, and kernels before 5.14 do not
// know it.
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
// reads as zero afterwards and must be committed again before it is used.
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
