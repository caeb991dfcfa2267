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

// openRooms opens the Room of a host with 100 MiB for n processes.
func openRooms(t *testing.T, n int) (*host, []*Room) {
	h := &host{}
	h.left.Store(100 * mib)
	m, err := NewRoom()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	rooms := make([]*Room, n)
	for i := range rooms {
		r, err := OpenRoom(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), m.FD()), n)
		require.NoError(t, err)
		r.root, rooms[i] = h, r
	}
	return h, rooms
}

// just is the need for n bytes that do not exist yet.
func just(n int64) func(int64) int64 { return func(int64) int64 { return n } }

func closeAll(t *testing.T, rooms []*Room) {
	for _, r := range rooms {
		require.NoError(t, r.Close())
	}
}

func TestClaimsThatFitTogetherDoNotWaitForEachOther(t *testing.T) {
	_, rooms := openRooms(t, 2)
	defer closeAll(t, rooms)
	a, _, err := rooms[0].claim(just(60 * mib))
	require.NoError(t, err)
	b, _, err := rooms[1].claim(just(30 * mib))
	require.NoError(t, err)
	require.EqualValues(t, 90*mib, rooms[0].claims.Load())
	a.took(20 * mib)
	require.EqualValues(t, 70*mib, rooms[0].claims.Load())
	a.end()
	b.end()
	require.Zero(t, rooms[0].claims.Load())
}

func TestClaimThatDoesNotFitBesideOthersIsDecidedWhenTheyAreThere(t *testing.T) {
	for left, fits := range map[int64]bool{40 * mib: false, 100 * mib: true} {
		h, rooms := openRooms(t, 2)
		a, _, err := rooms[0].claim(just(60 * mib))
		require.NoError(t, err)
		decided := make(chan error)
		go func() {
			b, _, err := rooms[1].claim(just(60 * mib))
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
		closeAll(t, rooms)
	}
}

func TestClaimsOfADeadProcessAreStruckOff(t *testing.T) {
	_, rooms := openRooms(t, 2)
	_, _, err := rooms[0].claim(just(60 * mib))
	require.NoError(t, err)
	require.NoError(t, unix.Close(rooms[0].fd)) // as the kernel does when it dies
	b, _, err := rooms[1].claim(just(60 * mib))
	require.NoError(t, err)
	require.EqualValues(t, 60*mib, rooms[1].claims.Load())
	b.end()
	require.NoError(t, rooms[1].Close())
}

func TestProcessesOfARoomTogetherTakeNoMoreThanIsLeft(t *testing.T) {
	h, rooms := openRooms(t, 8)
	defer closeAll(t, rooms)
	var took atomic.Int64
	var all sync.WaitGroup
	for _, r := range rooms {
		all.Go(func() {
			c, _, err := r.claim(just(30 * mib))
			if err != nil {
				return
			}
			for range 3 {
				h.left.Add(-10 * mib)
				c.took(10 * mib)
			}
			took.Add(1)
			c.end()
		})
	}
	all.Wait()
	require.EqualValues(t, 3, took.Load())
	require.EqualValues(t, 10*mib, h.left.Load())
}

func TestOneProcessCommitsAfterARefusedClaim(t *testing.T) {
	_, rooms := openRooms(t, 1)
	defer closeAll(t, rooms)
	m, err := NewMemfd("test", 1<<30)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	m.Share(rooms[0])
	require.ErrorIs(t, m.Commit(0, 1<<30), ErrNoMemory)
	require.NoError(t, m.Commit(0, 50*mib))
	require.NoError(t, m.Commit(0, 100*mib), "half of it is there")
	require.Zero(t, rooms[0].claims.Load())
}

func TestWhatIsNoRoomIsNotOpened(t *testing.T) {
	_, err := OpenRoom("/dev/null", 1)
	require.ErrorIs(t, err, ErrUnsealed)
	_, err = OpenRoom("/proc/self/exe", 1)
	require.Error(t, err)
}
