package arena

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestAllocAfterCloseReturnsErrClosed(t *testing.T) {
	for _, shared := range []bool{false, true} {
		a, err := New(1<<20, shared, nil)
		require.NoError(t, err)
		b, err := a.Alloc(100)
		require.NoError(t, err)
		require.NoError(t, a.Close())
		_, err = a.Alloc(100)
		require.ErrorIs(t, err, ErrClosed)
		require.NotErrorIs(t, err, ErrExhausted)
		require.NoError(t, a.Free(b), "there is nothing to give back")
	}
}

// TestBlocksHaveOneOwnerAfterKeptOnesFailToGoBack has the second of two kept blocks fail. The first one has gone
// back by then.
func TestBlocksHaveOneOwnerAfterKeptOnesFailToGoBack(t *testing.T) {
	a, err := New(4*Page, true, nil)
	require.NoError(t, err)
	b, err := a.Alloc(Page)
	require.NoError(t, err)
	require.NoError(t, a.Keep(b))
	require.True(t, a.kept.add(keptBlock{span{a.limit, 2 * Page}, 2 * Page}), "a block outside of the memfd")
	_, err = a.Alloc(4 * Page)
	require.ErrorIs(t, err, driver.ErrInvalid)

	owned := map[int64]bool{}
	for range 4 {
		b, err := a.Alloc(Page)
		require.NoError(t, err)
		require.False(t, owned[b.off], "two owners of the block at %d", b.off)
		owned[b.off] = true
	}
	require.NoError(t, a.Close())
}
