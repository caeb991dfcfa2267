package rmalloc

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRecentBlocksAreFreedOnceOrEnterHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const total = 2000
		h := newHeld(t, total*Granule, total)
		h.generation = generation(rapid.SampledFrom([]uint64{7, generationMask - 30, generationMask}).Draw(t, "generation"))
		r := NewRecent(h)
		type block struct {
			addr        Addr
			here, freed bool
		}
		var blocks []block // all that were added
		settled := 0
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				n := uint64(len(blocks))
				require.Equal(t, len(blocks)-settled == RecentBlocks, r.Full(n))
				if r.Full(n) || len(blocks) == total {
					t.Skip("no room")
				}
				here := rapid.Bool().Draw(t, "here")
				a, err := r.Add(n, len(blocks), 1, here)
				require.NoError(t, err)
				blocks = append(blocks, block{addr: a, here: here})
			},
			"free": func(t *rapid.T) {
				if len(blocks) == 0 {
					t.Skip("no block")
				}
				i := rapid.IntRange(max(0, len(blocks)-2*RecentBlocks), len(blocks)-1).Draw(t, "block")
				b := &blocks[i]
				require.Equal(t, b.here && !b.freed && i >= settled, r.Free(b.addr))
				b.freed = b.freed || b.here && i >= settled
				require.False(t, r.Free(b.addr), "freed twice")
			},
			"settle": func(t *rapid.T) {
				for n := rapid.IntRange(0, len(blocks)-settled).Draw(t, "n"); n > 0; n-- {
					b := blocks[settled]
					require.EqualValues(t, settled, r.Settled())
					a, freed, err := r.Settle()
					require.NoError(t, err)
					r.Step()
					if b.freed {
						require.Zero(t, a)
						require.Equal(t, Range{settled, 1}, freed)
					} else {
						require.Equal(t, b.addr, a)
						require.Positive(t, h.Slot(a))
					}
					settled++
				}
			},
		})
		require.False(t, r.Free(0))
		require.False(t, r.Free(notHere))
	})
}

func TestEachBlockThatManyGoroutinesFreeComesBackOnce(t *testing.T) {
	const blocks = 20_000
	h := newHeld(t, blocks*Granule, blocks)
	r := NewRecent(h)
	var added atomic.Uint64
	named := make(chan Addr, RecentBlocks)
	var freeing sync.WaitGroup
	var late atomic.Int64 // blocks that had entered Held
	for range 3 {
		freeing.Go(func() {
			for a := range named {
				if !r.Free(a) {
					late.Add(1)
				}
			}
		})
	}
	back := make([]int, blocks)
	settle := func() {
		for n := added.Load(); r.Settled() != n; r.Step() {
			a, freed, err := r.Settle()
			require.NoError(t, err)
			if a == 0 {
				back[freed.Offset]++
			} else {
				back[a.granule()]++
				late.Add(-1)
			}
		}
	}
	for i := range uint64(blocks) {
		if r.Full(i) {
			settle()
		}
		a, err := r.Add(i, int(i), 1, true)
		require.NoError(t, err)
		added.Store(i + 1)
		named <- a
	}
	close(named)
	freeing.Wait()
	settle()
	for i, n := range back {
		require.Equal(t, 1, n, "block %d", i)
	}
	require.Zero(t, late.Load(), "each block was freed or entered Held, and none both")
}
