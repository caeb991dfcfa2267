package bulk

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestStoreOntoItselfStoresNothing stores memory that faults on each store onto itself.
func TestStoreOntoItselfStoresNothing(t *testing.T) {
	mem, err := unix.Mmap(-1, 0, 4*Short, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(mem)) }()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for _, n := range []int{0, 8, Short, len(mem)} {
		require.NotPanics(t, func() { require.Equal(t, n, Store(mem[:n], mem[:n])) }, "%d bytes", n)
	}
}
