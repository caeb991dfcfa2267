//go:build linux

package memory_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

func TestImportSeesTheOwnersStores(t *testing.T) {
	m := newMemfd(t, 4*page)
	imp, err := new(memory.Importer).Import(os.Getpid(), m.FD(), m.Size())
	require.NoError(t, err)
	require.Len(t, imp.Bytes(), int(m.Size()))
	m.Bytes()[page] = 5
	require.Equal(t, byte(5), imp.Bytes()[page])
	imp.Bytes()[2*page] = 6
	require.Equal(t, byte(6), m.Bytes()[2*page])

	inode, err := memory.Sealed(m.FD(), 0, m.Size())
	require.NoError(t, err)
	require.Equal(t, inode, imp.Inode())

	stale := imp.Bytes()
	require.NoError(t, imp.Close())
	require.NoError(t, imp.Close(), "closing again")
	stale[page] = 99
	require.Equal(t, byte(5), m.Bytes()[page], "a stale slice reaches the owner no more")
}

func TestImportOutlivesTheOwner(t *testing.T) {
	m, err := memory.NewMemfd("short-lived", page)
	require.NoError(t, err)
	m.Bytes()[0] = 77
	imp, err := new(memory.Importer).Import(os.Getpid(), m.FD(), 0)
	require.NoError(t, err)
	require.NoError(t, m.Close())
	require.Equal(t, byte(77), imp.Bytes()[0])
	require.NoError(t, imp.Close())
}

func TestImportKeepsNoDescriptor(t *testing.T) {
	m := newMemfd(t, page)
	before := descriptors()
	for range 10 {
		imp, err := new(memory.Importer).Import(os.Getpid(), m.FD(), page)
		require.NoError(t, err)
		require.NoError(t, imp.Close())
	}
	require.Equal(t, before, descriptors())
}

// rawMemfd makes a memfd with just the given seals.
func rawMemfd(t *testing.T, size int64, seals int) int {
	t.Helper()
	fd, err := unix.MemfdCreate("raw", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	require.NoError(t, unix.Ftruncate(fd, size))
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	require.NoError(t, err)
	return fd
}

func TestImportRefusesAFileThatItsOwnerCouldResize(t *testing.T) {
	for _, seals := range []int{0, unix.F_SEAL_SHRINK, unix.F_SEAL_GROW, unix.F_SEAL_SEAL} {
		_, err := new(memory.Importer).Import(os.Getpid(), rawMemfd(t, page, seals), page)
		require.ErrorIs(t, err, memory.ErrUnsealed, "seals %#x", seals)
	}
	imp, err := new(memory.Importer).Import(os.Getpid(), rawMemfd(t, page, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW), page)
	require.NoError(t, err)
	require.NoError(t, imp.Close())
}

func TestImportRefusesAMemfdThatIsTooSmall(t *testing.T) {
	m := newMemfd(t, 2*page)
	_, err := new(memory.Importer).Import(os.Getpid(), m.FD(), 2*page+1)
	require.ErrorIs(t, err, memory.ErrTooSmall)
	_, err = new(memory.Importer).Import(os.Getpid(), rawMemfd(t, 0, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW), 0)
	require.ErrorIs(t, err, memory.ErrTooSmall, "an empty one cannot be mapped")
}

func TestImportRefusesOtherDescriptorsWithoutTouchingThem(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, file.Truncate(page))
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	end, err := unix.Open(fifo, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(end)
	dir, err := os.Open(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	for name, fd := range map[string]int{"file": int(file.Fd()), "fifo": end, "directory": int(dir.Fd())} {
		_, err := new(memory.Importer).Import(os.Getpid(), fd, page)
		require.ErrorIs(t, err, memory.ErrUnsealed, name)
	}
}

func TestImportOfAMissingDescriptorIsATypedError(t *testing.T) {
	_, err := new(memory.Importer).Import(os.Getpid(), 1<<20, page)
	require.ErrorIs(t, err, unix.ENOENT)
	for _, bad := range [][2]int{{0, 3}, {-1, 3}, {os.Getpid(), -1}} {
		_, err := new(memory.Importer).Import(bad[0], bad[1], page)
		require.ErrorIs(t, err, driver.ErrInvalid)
	}
	_, err = new(memory.Importer).Import(os.Getpid(), 3, -1)
	require.ErrorIs(t, err, driver.ErrInvalid)
}

func TestSealedAcceptsOnlyMemfdsThatPeersCouldImport(t *testing.T) {
	m := newMemfd(t, 2*page)
	_, err := memory.Sealed(m.FD(), page, page)
	require.NoError(t, err)
	for _, r := range [][2]int64{{page, page + 1}, {-1, 1}, {0, -1}, {1 << 62, 1 << 62}} {
		_, err = memory.Sealed(m.FD(), r[0], r[1])
		require.ErrorIs(t, err, driver.ErrInvalid, "%v", r)
	}
	_, err = memory.Sealed(rawMemfd(t, page, unix.F_SEAL_GROW), 0, page)
	require.ErrorIs(t, err, memory.ErrUnsealed)
	_, err = memory.Sealed(1<<20, 0, 1)
	require.ErrorIs(t, err, unix.EBADF)
}
