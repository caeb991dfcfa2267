package rmalloc

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewReturnsErrInvalidForConfigsOutOfBounds(t *testing.T) {
	for _, c := range []Config{
		{Size: 0}, {Size: -Granule}, {Size: Granule - 1}, {Size: Granule + 1}, {Size: MaxHeap + Granule}, {Size: Granule, Blocks: -1},
	} {
		_, err := New(c)
		require.ErrorIs(t, err, ErrInvalid, "%+v", c)
		_, err = NewHeld(c.Size, c.Blocks)
		require.ErrorIs(t, err, ErrInvalid, "%+v", c)
	}
	h, err := New(Config{Size: 1 << 20})
	require.NoError(t, err)
	require.Equal(t, Config{Size: 1 << 20, Blocks: DefaultBlocks, Policy: NextFit{}}, h.Config())
}

func TestBlockOfNoBytesTakesAGranule(t *testing.T) {
	h := newHeap(t, 2*Granule, 0, nil)
	a, b := alloc(t, h, 0), alloc(t, h, 0)
	require.NotEqual(t, a.Offset(), b.Offset())
	_, length, err := h.Range(a)
	require.NoError(t, err)
	require.Zero(t, length)
}

func TestEmptyHeapHoldsOneBlockOfItsSize(t *testing.T) {
	eachPolicy(t, func(t *testing.T, p Policy) {
		h := newHeap(t, MaxHeap, 0, p)
		_, err := h.Alloc(MaxHeap)
		require.ErrorIs(t, err, ErrTooLarge, "a flag cannot say so much")
		a := alloc(t, h, MaxBlock)
		require.Zero(t, h.Stats().Free())
		_, err = h.Alloc(0)
		require.Equal(t, ErrFull, err)
		require.NoError(t, h.Send(a))
		require.NoError(t, h.Release(0, MaxGranules))
		require.Equal(t, MaxHeap, h.Stats().Largest)
	})
}

func TestAllocReturnsErrFullAtTheLimitOfBlocks(t *testing.T) {
	h := newHeap(t, 1<<20, 2, nil)
	a := alloc(t, h, 1)
	alloc(t, h, 1)
	_, err := h.Alloc(1)
	require.Equal(t, ErrFull, err)
	require.NoError(t, h.Free(a))
	alloc(t, h, 1)
}

func TestErrorsNameTheRemedy(t *testing.T) {
	h := newHeap(t, 4*Granule, 0, nil)
	_, err := h.Alloc(4*Granule + 1)
	require.ErrorIs(t, err, ErrTooLarge)
	require.ErrorContains(t, err, "block of 257 bytes, heap of 256; open with a larger heap")
	_, err = h.Alloc(-1)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, ErrFull, "wait until the peer frees")
}

func TestFreeReturnsErrStaleForForeignAndFreedAddresses(t *testing.T) {
	h, other := newHeap(t, 4*Granule, 0, nil), newHeap(t, 4*Granule, 0, nil)
	h.generation, other.generation = 7, 1<<39
	a := alloc(t, h, 1)
	foreign := alloc(t, other, 1)
	require.Equal(t, a.Offset(), foreign.Offset())
	for _, bad := range []Addr{0, 1, foreign, a + 1, a - 1, at(1, 8), at(MaxGranules-1, 8)} {
		require.ErrorIs(t, h.Free(bad), ErrStale)
		require.ErrorIs(t, h.Send(bad), ErrStale)
		_, _, err := h.Range(bad)
		require.ErrorIs(t, err, ErrStale)
		require.ErrorContains(t, err, bad.String())
	}
	require.NoError(t, h.Send(a))
	require.ErrorIs(t, h.Send(a), ErrStale, "sent twice")
	require.ErrorIs(t, h.Free(a), ErrStale, "freed after it was sent")
	release(t, h, a, 1)
	b := alloc(t, h, 1)
	require.Equal(t, a.Offset(), b.Offset())
	require.ErrorIs(t, h.Free(a), ErrStale, "another block lies there now")
	require.NoError(t, h.Free(b))
	require.ErrorIs(t, h.Free(b), ErrStale, "freed twice")
}

func TestGenerationsWrapAroundWithoutZero(t *testing.T) {
	h := newHeap(t, 4*Granule, 0, nil)
	h.generation = generationMask - 1
	a, b := alloc(t, h, 1), alloc(t, h, 1)
	require.EqualValues(t, generationMask, a.Generation())
	require.EqualValues(t, RecentBlocks, b.Generation(), "the order of places in Recent goes on")
	require.NoError(t, h.Free(a))
	require.NoError(t, h.Free(b))
	require.Equal(t, "0x40#10", b.String())
}

func TestHeapRefusesTagsThatAreNotWholeSentBlocks(t *testing.T) {
	h := newHeap(t, 10*Granule, 0, nil) // sent: 0-1, 2-4; kept: 5; sent: 6; hole: 7-9
	for _, n := range []int{2, 3, 1, 1} {
		a := alloc(t, h, n*Granule)
		if n != 1 || a.Offset() == 6*Granule {
			require.NoError(t, h.Send(a))
		}
	}
	before := h.Stats()
	for _, r := range []Range{
		{0, 1}, {0, 3}, {0, 4}, {0, 6}, {1, 1}, {1, 4}, {2, 2}, {2, 4}, {2, 5}, {3, 2}, {5, 1}, {6, 2}, {6, 4}, {7, 3}, {9, 1}, {9, 2},
		{0, 0}, {0, -1}, {-1, 1}, {-1, 3}, {0, 10}, {0, 11}, {10, 1}, {1 << 32, 2}, {-1 << 32, 2}, {1 << 62, 1 << 62}, {1, -1 << 63}, {-1 << 63, 1<<63 - 1},
	} {
		err := h.Release(r.Offset, r.Count)
		require.ErrorIs(t, err, ErrCorrupt, "%v", r)
		require.Equal(t, before, h.Stats(), "%v", r)
	}
	require.NoError(t, h.Release(0, 5), "two blocks as one")
	require.NoError(t, h.Release(6, 1))
	require.Equal(t, 2, h.Stats().Holes)
}

func TestStatsCountOccupancyAndFragmentation(t *testing.T) {
	h := newHeap(t, 10*Granule, 0, nil)
	require.Zero(t, h.Stats().Fragmentation())
	a := alloc(t, h, 100) // 0-1
	alloc(t, h, 5*Granule)
	require.NoError(t, h.Free(a))
	s := h.Stats()
	s.Overhead = 0
	require.Equal(t, Stats{Size: 640, Blocks: 1, Payload: 320, Used: 320, Holes: 2, Largest: 192}, s)
	require.Equal(t, 320, s.Free())
	require.InDelta(t, 0.4, s.Fragmentation(), 1e-9)
	alloc(t, h, 3*Granule)
	alloc(t, h, 2*Granule)
	require.Zero(t, h.Stats().Fragmentation(), "nothing is free")
}

func TestBooksGrowWithUseNotWithTheLimit(t *testing.T) {
	h := newHeap(t, MaxHeap, 1<<20, nil)
	for range 4 {
		alloc(t, h, 1)
	}
	require.Less(t, h.Stats().Overhead, 400, "4 blocks of a million")

	const blocks = DefaultBlocks
	h = newHeap(t, MaxHeap, blocks, nil)
	fragment(t, h, blocks-1)
	require.Less(t, h.Stats().Overhead, blocks*75, "a hole behind each block: two descriptors")
}

// fragment fills a heap's lower part with sent blocks of a granule, until there are blocks of them.
// Behind each is a hole of the same size.
func fragment(t testing.TB, h *Heap, blocks int) {
	t.Helper()
	policy := h.config.Policy
	h.config.Policy = NextFit{}
	var gap Addr
	for i := range blocks {
		keep := alloc(t, h, 1)
		require.Equal(t, 2*i*Granule, keep.Offset())
		require.NoError(t, h.Send(keep))
		if i > 0 { // only now, so that the gap does not join the hole above
			require.NoError(t, h.Free(gap))
		}
		gap = alloc(t, h, 1)
	}
	require.NoError(t, h.Free(gap))
	require.Equal(t, blocks, h.Stats().Holes)
	h.config.Policy = policy
}

func TestAllocAndFreeAllocateNothingInSteadyState(t *testing.T) {
	eachPolicy(t, func(t *testing.T, p Policy) {
		h := newHeap(t, 256*Granule, 100, p)
		var live []Addr
		random := rand.New(rand.NewPCG(1, 2))
		step := func() {
			a, err := h.Alloc(random.IntN(6 * Granule))
			if err == nil {
				live = append(live, a)
				return
			}
			i := random.IntN(len(live))
			a, live[i] = live[i], live[len(live)-1]
			live = live[:len(live)-1]
			_, length, _ := h.Range(a)
			_ = h.Send(a)
			_ = h.Release(a.Offset()/Granule, Granules(length))
		}
		for range 20000 {
			step()
		}
		require.Zero(t, testing.AllocsPerRun(5000, step))
	})
}

// An invented address may look like the head of the books.
func TestHandRefusesInventedAddresses(t *testing.T) {
	h, err := New(Config{Size: 4096})
	require.NoError(t, err)
	for generation := range generation(8) {
		slot, _ := h.Hand(at(0, generation))
		require.Zero(t, slot)
	}
	a, err := h.Alloc(100)
	require.NoError(t, err)
	slot := h.Slot(a)
	require.Positive(t, slot)
	handed, n := h.Hand(a)
	require.Equal(t, slot, handed)
	require.Equal(t, 100, n)
	require.Zero(t, h.Slot(a), "it is the reader's")
	handed, _ = h.Hand(a)
	require.Zero(t, handed)
	require.NoError(t, h.Release(0, 2))
}
