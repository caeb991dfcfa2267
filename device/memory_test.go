package device_test

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/device"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

// ordinary makes Memory of n bytes that are no device's.
func ordinary(n int) *device.Memory {
	return device.Wrap(memory.Heap(n), device.About{Kind: driver.KindHeap, Node: -1, Align: 4096}, func() error { return nil })
}

func TestPiecesNeverOverlap(t *testing.T) {
	const page, pages = 4096, 16
	rapid.Check(t, func(rt *rapid.T) {
		m := ordinary(pages * page)
		owner := [pages]*device.Piece{}
		free := func(first, n int) bool {
			for _, p := range owner[first : first+n] {
				if p != nil {
					return false
				}
			}
			return true
		}
		var live []*device.Piece
		for range rapid.IntRange(0, 60).Draw(rt, "calls") {
			n := rapid.IntRange(1, 5).Draw(rt, "pages")
			var p *device.Piece
			var err error
			switch rapid.IntRange(0, 2).Draw(rt, "call") {
			case 0:
				room := false
				for first := range pages - n + 1 {
					room = room || free(first, n)
				}
				p, err = m.Allocate(n*page - 7)
				require.Equal(rt, room, err == nil)
				require.True(rt, room || errors.Is(err, device.ErrFull))
			case 1:
				first := rapid.IntRange(0, pages-n).Draw(rt, "first")
				p, err = m.Take(first*page, n*page)
				require.Equal(rt, free(first, n), err == nil)
				require.True(rt, err == nil || errors.Is(err, device.ErrTaken))
			default:
				if len(live) > 0 {
					last := live[len(live)-1]
					live = live[:len(live)-1]
					require.NoError(rt, last.Free())
					require.ErrorIs(rt, last.Free(), device.ErrClosed)
					for i := range owner {
						if owner[i] == last {
							owner[i] = nil
						}
					}
				}
			}
			if p != nil {
				require.Len(rt, p.Bytes(), n*page)
				for i := range n {
					require.Nil(rt, owner[p.Offset()/page+i])
					owner[p.Offset()/page+i] = p
				}
				live = append(live, p)
			}
		}
	})
}

func TestAllocateZeroesAndTakeKeepsContent(t *testing.T) {
	m := ordinary(2 * 4096)
	p, err := m.Allocate(1)
	require.NoError(t, err)
	p.Bytes()[5] = 7
	require.NoError(t, p.Free())
	p, err = m.Take(0, 4096)
	require.NoError(t, err)
	require.EqualValues(t, 7, p.Bytes()[5])
	require.NoError(t, p.Free())
	p, err = m.Allocate(4096)
	require.NoError(t, err)
	require.Zero(t, p.Bytes()[5])
}

func TestWrongUseOfMemoryReturnsTypedErrors(t *testing.T) {
	m := ordinary(2 * 4096)
	p, err := m.Allocate(4096)
	require.NoError(t, err)
	for _, at := range [][2]int{{-4096, 1}, {1, 1}, {0, 3 * 4096}, {4096, -1}, {8192, 1}} {
		_, err := m.Take(at[0], at[1])
		require.ErrorIs(t, err, device.ErrRange, "%v", at)
	}
	_, err = m.Allocate(-1)
	require.ErrorIs(t, err, device.ErrRange)
	require.ErrorIs(t, m.Close(), device.ErrTaken)
	_, err = p.Region()
	require.NoError(t, err)
	require.NoError(t, p.Free())
	_, err = p.Region()
	require.ErrorIs(t, err, device.ErrClosed)
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	_, err = m.Allocate(1)
	require.ErrorIs(t, err, device.ErrClosed)
}

func TestOpenRefusesWhatIsNoDevicesMemory(t *testing.T) {
	file := t.TempDir() + "/resource2"
	require.NoError(t, os.WriteFile(file, make([]byte, 4096), 0o600))
	for _, path := range []string{file, "/dev/null", "/dev/zero"} {
		_, err := device.Open(path)
		require.ErrorIs(t, err, memory.ErrUnsealed, path)
	}
	_, err := device.Open("/dev/dax99.9")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A host has huge pages, or Huge says how to get them.
func TestHugePagesAreThereOrTheRemedyIsNamed(t *testing.T) {
	m, err := device.Huge(1)
	if err != nil {
		require.True(t, errors.Is(err, memory.ErrNoMemory) || errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported), "%v", err)
		if errors.Is(err, memory.ErrNoMemory) {
			require.ErrorContains(t, err, "nr_hugepages")
		}
		return
	}
	require.Equal(t, 2<<20, m.About().Size)
	p, err := m.Allocate(2 << 20)
	require.NoError(t, err)
	p.Bytes()[2<<20-1] = 1
	require.NoError(t, p.Free())
	require.NoError(t, m.Close())
}
