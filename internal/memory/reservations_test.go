//go:build linux

package memory

import (
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A host is a file system on which so many bytes are left.
type host struct{ left atomic.Int64 }

func (h *host) Open(name string) (fs.File, error) {
	return files(map[string]string{"proc/meminfo": fmt.Sprintf("MemAvailable: %d kB\n", h.left.Load()>>10)}).Open(name)
}

const mib = 1 << 20

// openReservations opens the Reservations of n processes on a host with 100 MiB.
func openReservations(t *testing.T, n int) (*host, []*Reservations) {
	h := &host{}
	h.left.Store(100 * mib)
	m, err := NewReservations(n)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	all := make([]*Reservations, n)
	for i := range all {
		r, err := OpenReservations(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), m.FD()), n)
		require.NoError(t, err)
		r.root, all[i] = h, r
	}
	return h, all
}

// just is the need for n bytes that do not exist yet.
func just(n int64) func(int64) int64 { return func(int64) int64 { return n } }

func closeAll(t *testing.T, all []*Reservations) {
	for _, r := range all {
		require.NoError(t, r.Close())
	}
}

func TestReservationsThatFitTogetherDoNotWaitForEachOther(t *testing.T) {
	_, all := openReservations(t, 2)
	defer closeAll(t, all)
	a, _, err := all[0].reserve(just(60 * mib))
	require.NoError(t, err)
	b, _, err := all[1].reserve(just(30 * mib))
	require.NoError(t, err)
	require.EqualValues(t, 90*mib, all[0].bytes.Load())
	a.committed(20 * mib)
	require.EqualValues(t, 70*mib, all[0].bytes.Load())
	a.end()
	b.end()
	require.Zero(t, all[0].bytes.Load())
}

func TestReservationThatDoesNotFitBesideOthersWaitsForTheirPages(t *testing.T) {
	for left, fits := range map[int64]bool{40 * mib: false, 100 * mib: true} {
		h, all := openReservations(t, 2)
		a, _, err := all[0].reserve(just(60 * mib))
		require.NoError(t, err)
		decided := make(chan error)
		go func() {
			b, _, err := all[1].reserve(just(60 * mib))
			if err == nil {
				b.end()
			}
			decided <- err
		}()
		h.left.Store(left) // less if the pages of a are there, all if it took none
		a.end()
		if err := <-decided; fits {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrNoMemory)
			require.ErrorContains(t, err, "60 MiB more are needed, the host has 40 MiB left")
		}
		closeAll(t, all)
	}
}

func TestReservationsOfADeadProcessEnd(t *testing.T) {
	_, all := openReservations(t, 2)
	_, _, err := all[0].reserve(just(60 * mib))
	require.NoError(t, err)
	require.NoError(t, unix.Close(all[0].fd)) // as the kernel does when it dies
	b, _, err := all[1].reserve(just(60 * mib))
	require.NoError(t, err)
	require.EqualValues(t, 60*mib, all[1].bytes.Load())
	b.end()
	require.NoError(t, all[1].Close())
}

func TestProcessesTogetherCommitNoMoreThanTheHeadroom(t *testing.T) {
	h, all := openReservations(t, 8)
	defer closeAll(t, all)
	var took atomic.Int64
	var group sync.WaitGroup
	for _, r := range all {
		group.Go(func() {
			c, _, err := r.reserve(just(30 * mib))
			if err != nil {
				return
			}
			for range 3 {
				h.left.Add(-10 * mib)
				c.committed(10 * mib)
			}
			took.Add(1)
			c.end()
		})
	}
	group.Wait()
	require.EqualValues(t, 3, took.Load())
	require.EqualValues(t, 10*mib, h.left.Load())
}

func TestOneProcessCommitsAfterARefusedReservation(t *testing.T) {
	_, all := openReservations(t, 1)
	defer closeAll(t, all)
	m, err := NewMemfd("test", 1<<30)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	m.Share(all[0])
	require.ErrorIs(t, m.Commit(0, 1<<30), ErrNoMemory)
	require.NoError(t, m.Commit(0, 50*mib))
	require.NoError(t, m.Commit(0, 100*mib), "half of it is there")
	require.Zero(t, all[0].bytes.Load())
}

func TestOpenReservationsRefusesOtherFiles(t *testing.T) {
	_, err := OpenReservations("/dev/null", 1)
	require.ErrorIs(t, err, ErrUnsealed)
	_, err = OpenReservations("/proc/self/exe", 1)
	require.Error(t, err)
}
