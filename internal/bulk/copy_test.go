package bulk

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLongCopiesAreCompleteThroughTheCachesAndAround(t *testing.T) {
	for _, n := range []int{0, 1, piece - 1, piece, piece + 1, 2*piece - 1, 2 * piece, 5*piece + 7} {
		for _, through := range []bool{false, true} {
			src, dst := make([]byte, n), make([]byte, n+1)
			for i := range src {
				src[i] = byte(i * 7 >> 3)
			}
			Copy(dst[:n], src, through)
			require.True(t, bytes.Equal(src, dst[:n]), "%d bytes, through caches %v", n, through)
			require.Zero(t, dst[n])
		}
	}
}

// TestLongCopiesAreCompleteAtAllAlignments copies to and from each place of a line.
func TestLongCopiesAreCompleteAtAllAlignments(t *testing.T) {
	src := make([]byte, loadFrom+line)
	for i := range src {
		src[i] = byte(i * 7 >> 3)
	}
	for at := range line {
		for from := 0; from < line; from += 7 {
			dst := make([]byte, loadFrom+line)
			Copy(dst[at:][:loadFrom], src[from:][:loadFrom], true)
			require.True(t, bytes.Equal(src[from:][:loadFrom], dst[at:][:loadFrom]), "to %d from %d", at, from)
			require.Empty(t, bytes.Trim(dst[:at], "\x00"), "to %d from %d", at, from)
			require.Empty(t, bytes.Trim(dst[at+loadFrom:], "\x00"), "to %d from %d", at, from)
		}
	}
}

func TestCachedComparesTheBytesOfAllMembersWithTheCaches(t *testing.T) {
	require.True(t, Cached(2, 4<<20))
	require.False(t, Cached(2, 4<<20+1))
	require.True(t, Cached(8, 1<<20))
	require.False(t, Cached(8, 2<<20))
	require.True(t, Cached(1000, 0))
}

func TestCopyMovesOverlappingBytes(t *testing.T) {
	const n = 3*piece + 5
	for _, apart := range []int{0, 1, 100, piece - 1, piece, 2 * piece, n} {
		for _, back := range []bool{false, true} {
			mem := make([]byte, 2*n)
			for i := range mem {
				mem[i] = byte(i * 7 >> 3)
			}
			to, from := mem[apart:][:n], mem[:n]
			if back {
				to, from = from, to
			}
			want := bytes.Clone(from)
			Copy(to, from, true)
			require.True(t, bytes.Equal(want, to), "%d bytes apart, back: %v", apart, back)
		}
	}
}

func TestStoreCopiesMoreThanTheCachesHold(t *testing.T) {
	for _, n := range []int{cachedMost, cachedMost + 1} {
		src, dst := make([]byte, n), make([]byte, n+1)
		for i := range src {
			src[i] = byte(i * 7 >> 3)
		}
		require.Equal(t, n, Store(dst, src))
		require.True(t, bytes.Equal(src, dst[:n]), "%d bytes", n)
		require.Zero(t, dst[n])
	}
}
