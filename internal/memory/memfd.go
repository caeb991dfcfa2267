//go:build linux

package memory

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// resizeSeals keep every process, the owner included, from changing the size.
const resizeSeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

// A Memfd is a sealed memfd mapped once by its owner. Commit makes its pages
// present. All methods may be called from any goroutine.
type Memfd struct {
	mem          []byte        // the mapping; never shorter-lived than the process
	allowance    atomic.Int64  // bytes that Commit takes without a look at the host's memory
	reservations *Reservations // where commits reserve; nil: this process is alone

	mu     sync.RWMutex // held for reading while a call uses fd
	fd     int
	closed bool
}

// NewMemfd makes a sparse memfd of size bytes, rounded up to whole pages. name
// shows in /proc/PID/maps. No page is committed yet.
func NewMemfd(name string, size int64) (*Memfd, error) {
	size, err := wholePages(size)
	if err != nil {
		return nil, err
	}
	fd, err := createSealable(name)
	if err != nil {
		return nil, fmt.Errorf("memory: creating memfd %q: %w", name, Descriptors(err))
	}
	mem, err := sizeAndMap(fd, size)
	if err != nil {
		closeFD(fd)
		return nil, fmt.Errorf("memory: memfd %q of %d bytes: %w", name, size, err)
	}
	return &Memfd{mem: mem, fd: fd}, nil
}

// createSealable prefers a memfd that cannot be executed; kernels before 6.3 do
// not know it.
func createSealable(name string) (int, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate(name, flags)
	}
	return fd, err
}

// sizeAndMap sets the final size of a memfd, seals it, and maps it.
func sizeAndMap(fd int, size int64) ([]byte, error) {
	if err := unix.Ftruncate(fd, size); err != nil {
		return nil, fmt.Errorf("setting the size (see `ulimit -f`): %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, resizeSeals|unix.F_SEAL_SEAL); err != nil {
		return nil, fmt.Errorf("sealing: %w", err)
	}
	mem, err := mapShared(fd, size)
	if errors.Is(err, unix.ENOMEM) {
		return nil, fmt.Errorf("%w: no address space to map it (see `ulimit -v`): %w", ErrNoMemory, err)
	}
	return mem, err
}

// wholePages rounds size up; it refuses zero, negative and overflowing sizes.
func wholePages(size int64) (int64, error) {
	page := int64(os.Getpagesize())
	rounded := (size + page - 1) &^ (page - 1)
	if size <= 0 || rounded < size {
		return 0, fmt.Errorf("memory: %w: size %d", driver.ErrInvalid, size)
	}
	return rounded, nil
}

// Share has later commits reserve their memory in r, which other processes share. The
// Memfd does not close r.
func (m *Memfd) Share(r *Reservations) { m.reservations = r }

// Bytes returns the whole mapping. After Close it reads garbage.
func (m *Memfd) Bytes() []byte { return m.mem }

// Size returns the number of bytes, a multiple of the page size.
func (m *Memfd) Size() int64 { return int64(len(m.mem)) }

// FD returns the descriptor, -1 after Close. The Memfd keeps owning it.
func (m *Memfd) FD() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.fd
}

// Memory describes n bytes from off for registration. They must lie within Size. The caller must
// not close the Memfd while the registration lives.
func (m *Memfd) Memory(off, n int64) driver.Memory {
	return driver.Memory{Kind: driver.KindMemfd, Bytes: m.mem[off : off+n : off+n], FD: m.FD(), Offset: off}
}

// Close closes the descriptor and replaces the mapping by anonymous memory: stale
// slices read garbage. The kernel frees the pages when the last peer that
// imported them has closed them, too. Further calls do nothing.
func (m *Memfd) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	fd := m.fd
	m.fd = -1
	return errors.Join(overlay(m.mem), unix.Close(fd))
}
