//go:build linux

package memory

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestDuplicateIsTheSameMemfd and refuses a pipe, of which it keeps no descriptor.
func TestDuplicateIsTheSameMemfd(t *testing.T) {
	m, err := NewMemfd("duplicated", 4096)
	require.NoError(t, err)
	defer m.Close()
	fd, st, err := duplicate(os.Getpid(), m.FD())
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		t.Skip("this kernel, or its filter, lets no process duplicate descriptors: ", err)
	}
	require.NoError(t, err)
	imp, err := importFD(fd, st, m.Size())
	require.NoError(t, err)
	defer imp.Close()
	m.Bytes()[0] = 7
	require.Equal(t, byte(7), imp.Bytes()[0])

	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer write.Close()
	_, _, err = duplicate(os.Getpid(), int(read.Fd()))
	require.ErrorIs(t, err, ErrUnsealed)
	require.NoError(t, read.Close())
	_, err = write.Write([]byte{1})
	require.ErrorIs(t, err, unix.EPIPE, "a copy of the read end is open")
}

// TestImporterTriesNoCopyBehindARefusal has a stand-in refuse the first copy. Another failure is of one
// descriptor, and no refusal.
func TestImporterTriesNoCopyBehindARefusal(t *testing.T) {
	m, err := NewMemfd("refused", 4096)
	require.NoError(t, err)
	defer m.Close()
	for failure, want := range map[error]int{unix.EPERM: 1, unix.ENOSYS: 1, unix.EMFILE: 2} {
		i, tries := &Importer{}, 0
		for range 2 {
			fd, st, err := i.open(os.Getpid(), m.FD(), func(int, int) (int, unix.Stat_t, error) {
				tries++
				return -1, unix.Stat_t{}, failure
			})
			require.NoError(t, err)
			imp, err := importFD(fd, st, m.Size())
			require.NoError(t, err)
			m.Bytes()[0]++
			require.Equal(t, m.Bytes()[0], imp.Bytes()[0])
			require.NoError(t, imp.Close())
		}
		require.Equal(t, want, tries, failure)
	}
}
