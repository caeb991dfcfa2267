package arena

import (
	"testing"

	"github.com/stretchr/testify/require"
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
