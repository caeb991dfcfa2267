package arena

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// TestExtentsAreMadeOnceAndGivenBackWithTheirBlock in each way in which a block goes. The arena keeps those of which no
// more was committed, and the next ones read zero.
func TestExtentsAreMadeOnceAndGivenBackWithTheirBlock(t *testing.T) {
	for name, giveBack := range map[string]func(*Arena, Block) error{
		"Free": (*Arena).Free, "Keep": (*Arena).Keep,
		"Release": func(a *Arena, b Block) error { a.Quarantine(b); return a.Release(b) },
	} {
		for _, shared := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				a, err := New(64*Page, shared, nil)
				require.NoError(t, err)
				defer a.Close()
				for range 3 {
					b, err := a.AllocExtents(Page, 3, 8*Page, 2*Page)
					require.NoError(t, err)
					require.Equal(t, 8*Page, b.Behind.Each)
					require.Equal(t, 3, b.Behind.Count)
					require.EqualValues(t, Page, a.Used())
					mem, err := b.Behind.Make(2)
					require.NoError(t, err)
					require.Equal(t, make([]byte, 2*Page), mem.Bytes[:2*Page])
					mem.Bytes[Page] = 7
					again, err := b.Extent(2)
					require.NoError(t, err)
					require.Same(t, &mem.Bytes[0], &again[0])
					grown, err := b.Behind.Make(0)
					require.NoError(t, err)
					require.NoError(t, grown.Demand.Commit(5*Page))
					require.EqualValues(t, 17*Page, a.Used())
					require.NoError(t, giveBack(a, b))
					require.Zero(t, a.Used())
					require.NoError(t, b.Shortage())
				}
				if shared {
					require.LessOrEqual(t, committed(t, a), int64(3*Page), "one extent, and the block")
				}
			})
		}
	}
}

// TestExtentWithoutRoomTakesWritesAndReportsTheShortage to the rank whose memory it is.
func TestExtentWithoutRoomTakesWritesAndReportsTheShortage(t *testing.T) {
	a, err := New(10*Page, true, nil)
	require.NoError(t, err)
	defer a.Close()
	b, err := a.AllocExtents(Page, 2, 8*Page, Page)
	require.NoError(t, err)
	_, err = b.Extent(0)
	require.NoError(t, err)
	mem, err := b.Behind.Make(1)
	require.NoError(t, err)
	require.Len(t, mem.Bytes, 8*Page)
	require.Equal(t, driver.KindHeap, mem.Kind)
	require.ErrorIs(t, b.Shortage(), ErrExhausted)
	_, err = b.Extent(1)
	require.ErrorIs(t, err, ErrExhausted)
	require.NoError(t, a.Free(b))
	require.Zero(t, a.Used())
}
