package arena

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

func TestFreedBlocksAreFoundAgainAndReadZero(t *testing.T) {
	a, err := New(16*Page, true, nil)
	require.NoError(t, err)
	defer a.Close()
	b1, err := a.Alloc(3 * Page)
	require.NoError(t, err)
	b2, err := a.Alloc(1)
	require.NoError(t, err)
	b1.Bytes[0] = 7
	require.NoError(t, a.Free(b1))
	require.EqualValues(t, Page, a.Used())
	again, err := a.Alloc(2*Page + 1)
	require.NoError(t, err)
	require.Equal(t, b1.Offset, again.Offset)
	require.Zero(t, again.Bytes[0])
	require.NotEqual(t, b2.Offset, again.Offset)
}

// TestKeptBlockReadsZeroAndTakesNoPages for the next block of its size. A larger block takes the place of
// kept ones, of which no more than keptMost bytes stay.
func TestKeptBlockReadsZeroAndTakesNoPages(t *testing.T) {
	const most = keptMost / Page
	a, err := New((most+2)*Page, true, nil)
	require.NoError(t, err)
	defer a.Close()
	blocks := make([]Block, most/2+1)
	for i := range blocks {
		blocks[i], err = a.Alloc(2 * Page)
		require.NoError(t, err)
		blocks[i].Bytes[Page] = 7
	}
	for _, b := range blocks {
		require.NoError(t, a.Keep(b))
	}
	require.Zero(t, a.Used())
	require.EqualValues(t, keptMost, committed(t, a), "the last one found no room among the kept ones")
	b, err := a.Alloc(2*Page - 1)
	require.NoError(t, err)
	require.Zero(t, b.Bytes[Page])
	require.EqualValues(t, keptMost, committed(t, a))
	require.EqualValues(t, 2*Page, a.Used())
	_, err = a.AllocPart(most*Page, Page)
	require.NoError(t, err)
	require.EqualValues(t, 3*Page, committed(t, a))
	require.NoError(t, a.Free(b))
	require.EqualValues(t, Page, committed(t, a))
}

// committed returns the bytes of a's memfd that occupy memory.
func committed(t *testing.T, a *Arena) int64 {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(a.memfd.FD(), &st))
	return st.Blocks * 512
}

// TestKeptPartReadsZeroAndTakesNoPages for the next block whose part is as long. A block of which more was committed is
// freed.
func TestKeptPartReadsZeroAndTakesNoPages(t *testing.T) {
	a, err := New(2*keptMost, true, nil)
	require.NoError(t, err)
	defer a.Close()
	alloc := func(now int) Block {
		b, err := a.AllocOnDemand(keptMost, now)
		require.NoError(t, err)
		require.Equal(t, make([]byte, now), b.Bytes[:now])
		b.Bytes[now-1] = 7
		return b
	}
	b := alloc(2 * Page)
	require.NoError(t, a.Keep(b))
	require.Zero(t, a.Used())
	require.EqualValues(t, 2*Page, committed(t, a))
	other := alloc(Page)
	require.NotEqual(t, b.Offset, other.Offset)
	again := alloc(2 * Page)
	require.Equal(t, b.Offset, again.Offset)
	require.EqualValues(t, 3*Page, committed(t, a))
	require.NoError(t, again.Demand.Commit(3*Page))
	require.NoError(t, a.Keep(again))
	require.EqualValues(t, Page, committed(t, a))
	require.EqualValues(t, keptMost, a.Used())
}

func TestPartOfABlockOccupiesMemoryUntilComplete(t *testing.T) {
	a, err := New(64*Page, true, nil)
	require.NoError(t, err)
	defer a.Close()
	b, err := a.AllocPart(32*Page, Page+1)
	require.NoError(t, err)
	require.EqualValues(t, 2*Page, committed(t, a))
	require.EqualValues(t, 32*Page, a.Used())
	require.NoError(t, a.Complete(b, 3*Page-1))
	require.EqualValues(t, 3*Page, committed(t, a))
	require.NoError(t, a.Complete(b, len(b.Bytes)))
	require.EqualValues(t, 32*Page, committed(t, a))
	require.NoError(t, a.Free(b))
	require.Zero(t, committed(t, a))
	_, err = a.AllocPart(1, 2)
	require.ErrorIs(t, err, driver.ErrInvalid)
}

// TestDemandOfABlockWaitsForNoOtherCall holds the mutex of all other calls.
func TestDemandOfABlockWaitsForNoOtherCall(t *testing.T) {
	for _, shared := range []bool{true, false} {
		a, err := New(64*Page, shared, nil)
		require.NoError(t, err)
		b, err := a.AllocOnDemand(32*Page, 2*Page)
		require.NoError(t, err)
		require.Equal(t, 2*Page, b.Demand.Present)
		a.mu.Lock()
		err = b.Demand.Commit(5 * Page)
		a.mu.Unlock()
		require.NoError(t, err)
		if shared {
			var st unix.Stat_t
			require.NoError(t, unix.Fstat(a.memfd.FD(), &st))
			require.EqualValues(t, 5*Page, st.Blocks*512)
		}
		require.NoError(t, a.Close())
		if shared {
			require.ErrorIs(t, b.Demand.Commit(6*Page), ErrClosed)
		}
	}
}

func TestExhaustionNamesTheRemedy(t *testing.T) {
	for _, shared := range []bool{true, false} {
		a, err := New(4*Page, shared, nil)
		require.NoError(t, err)
		_, err = a.Alloc(5 * Page)
		require.ErrorIs(t, err, ErrExhausted)
		require.ErrorContains(t, err, "raise GRUN_HEAP")
		_, err = a.Alloc(-1)
		require.Error(t, err)
		b, err := a.Alloc(4 * Page)
		require.NoError(t, err)
		_, err = a.Alloc(1)
		require.ErrorIs(t, err, ErrExhausted)
		require.NoError(t, a.Free(b))
		_, err = a.Alloc(4 * Page)
		require.NoError(t, err)
		require.NoError(t, a.Close())
	}
}

// TestBlocksLongerThanAnyMemoryAreRefused whose length in whole pages is no int.
func TestBlocksLongerThanAnyMemoryAreRefused(t *testing.T) {
	for _, shared := range []bool{true, false} {
		a, err := New(64*Page, shared, nil)
		require.NoError(t, err)
		_, err = a.Alloc(math.MaxInt)
		require.ErrorIs(t, err, ErrExhausted)
		require.Zero(t, a.Used())
		require.NoError(t, a.Close())
	}
}

func TestExhaustionNamesTheQuarantinedBytes(t *testing.T) {
	for _, shared := range []bool{true, false} {
		a, err := New(4*Page, shared, nil)
		require.NoError(t, err)
		b, err := a.Alloc(3 * Page)
		require.NoError(t, err)
		a.Quarantine(b)
		_, err = a.Alloc(2 * Page)
		require.ErrorContains(t, err, "12 KiB in use (12 KiB of that quarantined")
		require.ErrorContains(t, err, "Team.Free gives back the memory of calls that ended early")
		require.EqualValues(t, 3*Page, a.Quarantined())
		require.NoError(t, a.Release(b))
		require.Zero(t, a.Quarantined())
		require.Zero(t, a.Used())
		_, err = a.Alloc(5 * Page)
		require.NotContains(t, err.Error(), "quarantined")
		require.NoError(t, a.Close())
	}
}

// TestBlocksNeverOverlap compares random allocations with a map of pages.
func TestBlocksNeverOverlap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const pages = 64
		f := freeList{{0, pages}}
		owner := [pages]int{}
		live := map[int]span{}
		for id := 1; id < 200; id++ {
			if rapid.Bool().Draw(rt, "alloc") {
				n := rapid.Int64Range(1, 12).Draw(rt, "n")
				off, ok := f.take(n)
				if !ok {
					continue
				}
				for p := off; p < off+n; p++ {
					require.Zero(rt, owner[p], "page %d is taken", p)
					owner[p] = id
				}
				live[id] = span{off, n}
			} else if len(live) > 0 {
				keys := make([]int, 0, len(live))
				for k := 1; k < id; k++ {
					if _, ok := live[k]; ok {
						keys = append(keys, k)
					}
				}
				k := rapid.SampledFrom(keys).Draw(rt, "free")
				s := live[k]
				delete(live, k)
				for p := s.off; p < s.off+s.n; p++ {
					owner[p] = 0
				}
				f.give(s.off, s.n)
			}
			checkSpans(rt, f, owner[:])
		}
	})
}

// checkSpans holds the list against the map: sorted, merged, and exactly the
// pages without an owner.
func checkSpans(rt *rapid.T, f freeList, owner []int) {
	free := make([]bool, len(owner))
	for i, s := range f {
		require.Positive(rt, s.n)
		if i > 0 {
			require.Greater(rt, s.off, f[i-1].off+f[i-1].n, "unsorted or unmerged")
		}
		for p := s.off; p < s.off+s.n; p++ {
			free[p] = true
		}
	}
	for p, o := range owner {
		require.Equal(rt, o == 0, free[p], "page %d", p)
	}
}

func TestHeapBeyondTheAddressSpaceNamesTheRemedy(t *testing.T) {
	_, err := New(1<<50, true, nil)
	require.ErrorIs(t, err, memory.ErrNoMemory)
	require.ErrorContains(t, err, "grun --heap")
}
