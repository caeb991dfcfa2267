package atomics

import (
	"sync/atomic"
	"unsafe"
)

// Word64 returns the first 8 bytes of mem, 8-aligned, as a word for atomics. The
// slice expression checks the length. Indexing a byte would be a plain read,
// which races with the atomics of other goroutines.
func Word64(mem []byte) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(mem[:8:len(mem)])))
}

// Words64 returns mem, 8-aligned, as words for atomics. It leaves out an incomplete
// last word.
func Words64(mem []byte) []atomic.Uint64 {
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/8)
}

// Bytes returns the memory of words, which goroutines access by atomics in turn with plain
// accesses.
func Bytes(words []atomic.Uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}

// Word32 returns the first 4 bytes of mem, 4-aligned, as a word for atomics.
func Word32(mem []byte) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(mem[:4:len(mem)])))
}

// wordAround returns the aligned word that holds the 1 or 2 bytes at mem.
// Registered memory consists of whole words, so it stays inside.
func wordAround(mem []byte) (word *atomic.Uint32, offset uintptr) {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	offset = uintptr(p) % 4
	return (*atomic.Uint32)(unsafe.Add(p, -int(offset))), offset
}

// wordPair returns the first 16 bytes of mem, 16-aligned, as a word for atomics.
func wordPair(mem []byte) *pair {
	return (*pair)(unsafe.Pointer(unsafe.SliceData(mem[:16:len(mem)])))
}
