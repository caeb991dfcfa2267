//go:build linux

package memory_test

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

var page = int64(os.Getpagesize())

func newMemfd(t *testing.T, size int64) *memory.Memfd {
	t.Helper()
	m, err := memory.NewMemfd("test", size)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// resident returns the memory that the memfd holds.
func resident(t *testing.T, m *memory.Memfd) int64 {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(m.FD(), &st))
	return st.Blocks * 512
}

func TestSizeIsRoundedToPagesAndNothingIsCommitted(t *testing.T) {
	m := newMemfd(t, 3*page+1)
	require.Equal(t, 4*page, m.Size())
	require.Len(t, m.Bytes(), int(4*page))
	require.Zero(t, resident(t, m))
}

func TestMemfdIsSparse(t *testing.T) {
	m := newMemfd(t, 1<<40)
	m.Bytes()[1<<39] = 1
	require.Equal(t, page, resident(t, m))
}

func TestMemfdCannotBeResizedOrUnsealed(t *testing.T) {
	m := newMemfd(t, page)
	require.ErrorIs(t, unix.Ftruncate(m.FD(), 0), unix.EPERM)
	require.ErrorIs(t, unix.Ftruncate(m.FD(), 2*page), unix.EPERM)
	_, err := unix.FcntlInt(uintptr(m.FD()), unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
	require.ErrorIs(t, err, unix.EPERM)
}

func TestMemfdIsNotInheritedByPrograms(t *testing.T) {
	m := newMemfd(t, page)
	flags, err := unix.FcntlInt(uintptr(m.FD()), unix.F_GETFD, 0)
	require.NoError(t, err)
	require.NotZero(t, flags&unix.FD_CLOEXEC)
}

func TestBadSizesAreRefused(t *testing.T) {
	for _, size := range []int64{0, -1, math.MinInt64, math.MaxInt64} {
		_, err := memory.NewMemfd("bad", size)
		require.ErrorIs(t, err, driver.ErrInvalid, "size %d", size)
	}
	_, err := memory.NewMemfd(strings.Repeat("x", 300), page)
	require.ErrorIs(t, err, unix.EINVAL)
}

func TestCommitMakesPagesPresentAndKeepsContents(t *testing.T) {
	m := newMemfd(t, 64*page)
	m.Bytes()[5*page] = 42
	require.NoError(t, m.Commit(3*page+1, 10*page))
	require.Equal(t, 11*page, resident(t, m))
	require.Equal(t, byte(42), m.Bytes()[5*page])
	require.NoError(t, m.Commit(0, m.Size()))
	require.Equal(t, m.Size(), resident(t, m))
	require.NoError(t, m.Commit(m.Size(), 0))
}

func TestCommittedPagesDoNotFault(t *testing.T) {
	m := newMemfd(t, 1024*page)
	require.NoError(t, m.Commit(0, m.Size()))
	faults := func() int64 {
		var ru unix.Rusage
		require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &ru))
		return ru.Minflt
	}
	before := faults()
	for off := int64(0); off < m.Size(); off += page {
		m.Bytes()[off] = 1
	}
	require.Less(t, faults()-before, int64(512), "touching 1024 pages")
}

func TestCommitOfMoreThanTheHostHasNamesTheRemedy(t *testing.T) {
	m := newMemfd(t, 1<<44)
	err := m.Commit(0, m.Size())
	require.ErrorIs(t, err, memory.ErrNoMemory)
	require.ErrorContains(t, err, "df /dev/shm")
	require.ErrorContains(t, err, "memory cgroup")
	require.Zero(t, resident(t, m), "nothing is taken")
	require.NoError(t, m.Commit(0, page), "a smaller one still works")
}

func TestMappingWithoutAddressSpaceNamesTheRemedy(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), memory.ErrNoMemory.Error())
	require.Contains(t, string(out), "ulimit -v")
}

func TestPunchGivesMemoryBackAndReadsAsZero(t *testing.T) {
	m := newMemfd(t, 8*page)
	require.NoError(t, m.Commit(0, m.Size()))
	for i := range m.Bytes() {
		m.Bytes()[i] = 7
	}
	require.NoError(t, m.Punch(2*page, 3*page))
	require.Equal(t, 5*page, resident(t, m))
	for i, b := range m.Bytes() {
		want := byte(7)
		if int64(i) >= 2*page && int64(i) < 5*page {
			want = 0
		}
		require.Equal(t, want, b, "byte %d", i)
	}
}

func TestRangesOutsideAreRefused(t *testing.T) {
	m := newMemfd(t, 4*page)
	for _, r := range [][2]int64{{-1, 1}, {0, -1}, {0, m.Size() + 1}, {m.Size(), 1}, {math.MaxInt64, math.MaxInt64}, {1, math.MaxInt64}} {
		require.ErrorIs(t, m.Commit(r[0], r[1]), driver.ErrInvalid, "%v", r)
		require.ErrorIs(t, m.Punch(r[0], r[1]), driver.ErrInvalid, "%v", r)
	}
}

func TestStaleSliceSurvivesClose(t *testing.T) {
	m, err := memory.NewMemfd("stale", 16*page)
	require.NoError(t, err)
	stale := m.Bytes()
	stale[0], stale[len(stale)-1] = 1, 1
	require.NoError(t, m.Close())
	require.NoError(t, m.Close(), "closing again")
	for i := range stale {
		stale[i]++
	}
	require.Equal(t, byte(1), stale[0], "not the memfd's memory any more")
	require.Equal(t, -1, m.FD())
	require.ErrorIs(t, m.Commit(0, page), driver.ErrClosed)
	require.ErrorIs(t, m.Punch(0, page), driver.ErrClosed)
}

func TestClosedMemfdLeavesNoMapping(t *testing.T) {
	name := fmt.Sprintf("gone-%d", os.Getpid())
	m, err := memory.NewMemfd(name, page)
	require.NoError(t, err)
	require.Equal(t, 1, mappingsOf(t, name))
	require.NoError(t, m.Close())
	require.Zero(t, mappingsOf(t, name))
}

func mappingsOf(t *testing.T, name string) int {
	t.Helper()
	f, err := os.Open("/proc/self/maps")
	require.NoError(t, err)
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.Contains(lines.Text(), "memfd:"+name) {
			n++
		}
	}
	return n
}

func TestCloseDuringACommitIsSafe(t *testing.T) {
	for range 20 {
		m, err := memory.NewMemfd("racing", 256*page)
		require.NoError(t, err)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := range int64(16) {
					if err := m.Commit(i*16*page, 16*page); err != nil {
						require.ErrorIs(t, err, driver.ErrClosed)
					}
					m.Bytes()[i*page] = 1
				}
			})
		}
		require.NoError(t, m.Close())
		wg.Wait()
	}
}

func TestMemoryDescribesTheRange(t *testing.T) {
	m := newMemfd(t, 4*page)
	mem := m.Memory(page+8, 100)
	require.Equal(t, driver.KindMemfd, mem.Kind)
	require.Equal(t, m.FD(), mem.FD)
	require.Equal(t, page+8, mem.Offset)
	require.Len(t, mem.Bytes, 100)
	require.Equal(t, 100, cap(mem.Bytes))
	mem.Bytes[0] = 9
	require.Equal(t, byte(9), m.Bytes()[page+8])
}
