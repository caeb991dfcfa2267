package verbstest

import (
	"sync/atomic"
	"unsafe"
)

// word64 returns 8-aligned memory as a word for atomics.
func word64(mem []byte) *atomic.Uint64 {
	mem = mem[:8] // checks the length without a read that the race detector would see
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(mem)))
}
