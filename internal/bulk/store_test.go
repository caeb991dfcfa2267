package bulk

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStoreCopiesLikeCopy at all alignments, around the length from which lines are
// stored whole, and nothing beside it.
func TestStoreCopiesLikeCopy(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		mem, src := make([]byte, 3*Short), make([]byte, 3*Short)
		for i := range src {
			mem[i], src[i] = byte(random.Uint32()), byte(random.Uint32())
		}
		at, from, n, room := random.IntN(70), random.IntN(70), random.IntN(2*Short), random.IntN(2*Short)
		want := bytes.Clone(mem)
		copied := copy(want[at:][:room], src[from:][:n])
		require.Equal(t, copied, Store(mem[at:][:room], src[from:][:n]))
		require.True(t, bytes.Equal(want, mem), "%d bytes from %d to %d, room for %d", n, from, at, room)
	}
	require.Zero(t, Store(nil, nil))
}

func TestStoreMovesOverlappingBytes(t *testing.T) {
	for _, apart := range []int{0, 1, 100, Short, 2 * Short} {
		for _, back := range []bool{false, true} {
			mem := make([]byte, 5*Short)
			for i := range mem {
				mem[i] = byte(i * 7 >> 3)
			}
			to, from := mem[apart:], mem[:2*Short]
			if back {
				to, from = mem, mem[apart:][:2*Short]
			}
			want := bytes.Clone(from)
			Store(to, from)
			require.True(t, bytes.Equal(want, to[:len(want)]), "%d bytes apart, back: %v", apart, back)
		}
	}
}

// BenchmarkStore writes memory that no other core has.
func BenchmarkStore(b *testing.B) {
	dst, src := make([]byte, 64<<10), make([]byte, 64<<10)
	for name, f := range map[string]func(dst, src []byte) int{"store": Store, "copy": func(dst, src []byte) int { return copy(dst, src) }} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(dst)))
			for b.Loop() {
				f(dst, src)
			}
		})
	}
}
