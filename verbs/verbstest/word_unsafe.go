package verbstest

import (
	"sync/atomic"
	"unsafe"
)

// word64 views 8-aligned memory as a word for atomics.
func word64(mem []byte) *atomic.Uint64 {
	_ = mem[7]
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(mem)))
}
