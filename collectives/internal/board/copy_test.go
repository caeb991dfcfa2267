package board

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLongCopiesAreWholeThroughCachesOrAround(t *testing.T) {
	for _, n := range []int{0, 1, copyPiece - 1, copyPiece, copyPiece + 1, 2*copyPiece - 1, 2 * copyPiece, 5*copyPiece + 7} {
		for _, through := range []bool{false, true} {
			src, dst := make([]byte, n), make([]byte, n+1)
			fill(src, uint64(n), 0)
			copyLong(dst[:n], src, through)
			require.True(t, bytes.Equal(src, dst[:n]), "%d bytes, through caches %v", n, through)
			require.Zero(t, dst[n])
		}
	}
}

func TestWhatAllMembersWriteDecidesHowLongCopiesGo(t *testing.T) {
	require.True(t, cached(2, 4<<20))
	require.False(t, cached(2, 4<<20+1))
	require.True(t, cached(8, 1<<20))
	require.False(t, cached(8, 2<<20))
	require.True(t, cached(1000, 0))
}
