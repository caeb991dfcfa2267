package loop

import (
	"sync/atomic"
	"unsafe"
)

// addressOf is where memory starts: the number that peers know it by.
func addressOf(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

// word64 views 8-aligned memory as a word for atomics.
func word64(mem []byte) *atomic.Uint64 {
	mem = mem[:8] // checks the length without a read that the race detector would see
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(mem)))
}

// word32 views 4-aligned memory as a word for atomics.
func word32(mem []byte) *atomic.Uint32 {
	mem = mem[:4]
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(mem)))
}

// wordAround views the aligned word that contains the 1 or 2 bytes at mem. The
// allocator's blocks are aligned words, so it never leaves the allocation.
func wordAround(mem []byte) (word *atomic.Uint32, offset uintptr) {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	offset = uintptr(p) % 4
	return (*atomic.Uint32)(unsafe.Add(p, -int(offset))), offset
}
