//go:build linux

package memory

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// An Imported is another process's memfd, mapped here.
type Imported struct {
	mem   []byte
	inode uint64

	mu     sync.Mutex
	closed bool
}

// importPath is [Importer.Import] of the file at path.
func importPath(path string, size int64) (*Imported, error) {
	fd, st, err := openMemory(path)
	if err != nil {
		return nil, err
	}
	return importFD(fd, st, size)
}

// importFD maps a file that its owner says has a size, and closes its descriptor. Only a sealed memfd or
// a device is safe to map: the owner could shrink any other file.
func importFD(fd int, st unix.Stat_t, size int64) (*Imported, error) {
	defer closeFD(fd)
	if unsealed := sealed(fd); unsealed != nil {
		var err error
		if st.Size, _, err = deviceOf(fd); err != nil {
			return nil, errors.Join(unsealed, err)
		}
	}
	if st.Size < size || st.Size == 0 {
		return nil, fmt.Errorf("%w: %d bytes, its owner said %d", ErrTooSmall, st.Size, size)
	}
	mem, err := mapShared(fd, st.Size)
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes: %w", st.Size, err)
	}
	return &Imported{mem: mem, inode: st.Ino}, nil
}

// sealed refuses a file that its owner could shrink under a mapping.
func sealed(fd int) error {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&resizeSeals != resizeSeals {
		return fmt.Errorf("%w: seals %#x", ErrUnsealed, max(seals, 0))
	}
	return nil
}

// openRegular opens path only after checking that it is a regular file: opening a
// pipe would block, and opening a device might do anything.
func openRegular(path string) (int, unix.Stat_t, error) {
	return openChecked(path, func(st *unix.Stat_t) error {
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return fmt.Errorf("%w: not a regular file", ErrUnsealed)
		}
		return nil
	})
}

// openMemory is openRegular that opens device-dax, too.
func openMemory(path string) (int, unix.Stat_t, error) { return openChecked(path, checkMemory) }

// checkMemory refuses a file that is neither regular nor device-dax.
func checkMemory(st *unix.Stat_t) error {
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG && (kind != unix.S_IFCHR || !isDAX(st)) {
		return fmt.Errorf("%w: neither a regular file nor device-dax", ErrUnsealed)
	}
	return nil
}

// openChecked opens a file after check has seen its metadata. A plain open could block, or have
// effects, on a file of another kind.
func openChecked(path string, check func(*unix.Stat_t) error) (int, unix.Stat_t, error) {
	var st unix.Stat_t
	handle, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, st, hint(err)
	}
	defer closeFD(handle)
	if err := unix.Fstat(handle, &st); err != nil {
		return -1, st, err
	}
	if err := check(&st); err != nil {
		return -1, st, err
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", handle), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, st, hint(err)
	}
	return fd, st, nil
}

// closeFD closes a descriptor through which nothing was written.
func closeFD(fd int) { _ = unix.Close(fd) }

// hint adds a remedy to the failures that users meet.
func hint(err error) error {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w (run all ranks of a host as one user, without set-user-ID, in one container)", err)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return Descriptors(err)
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%w (the process ended, closed it, or lives in another PID namespace)", err)
	}
	return err
}

// Bytes returns the whole mapping. After Close it reads garbage.
func (i *Imported) Bytes() []byte { return i.mem }

// Inode returns the identity of the memfd on this host; see [Sealed].
func (i *Imported) Inode() uint64 { return i.inode }

// Close replaces the mapping by anonymous memory: stale slices read garbage.
// Further calls do nothing.
func (i *Imported) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.closed = true
	return overlay(i.mem)
}

// Sealed checks that peers could import n bytes at offset of descriptor fd of this
// process.
func Sealed(fd int, offset, n int64) (inode uint64, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, fmt.Errorf("memory: descriptor %d: %w", fd, err)
	}
	if unsealed := sealed(fd); unsealed != nil {
		var err error
		if st.Size, _, err = deviceOf(fd); err != nil {
			return 0, fmt.Errorf("memory: descriptor %d: %w", fd, errors.Join(unsealed, err))
		}
	}
	if offset < 0 || n < 0 || offset > st.Size || n > st.Size-offset {
		return 0, fmt.Errorf("memory: %w: %d bytes at %d of a memfd of %d", driver.ErrInvalid, n, offset, st.Size)
	}
	return st.Ino, nil
}
