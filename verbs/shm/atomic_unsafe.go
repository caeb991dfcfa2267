package shm

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

func aligned(mem []byte, width uintptr) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%width == 0
}

// word64 requires 8 aligned bytes.
func word64(mem []byte) *atomic.Uint64 {
	_ = mem[7]
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(mem)))
}

// word32 requires 4 aligned bytes.
func word32(mem []byte) *atomic.Uint32 {
	_ = mem[3]
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(mem)))
}

// containingWord is the aligned 32-bit word around mem, and by how many bits
// mem is shifted in it. The word may reach out of mem, not out of its page.
func containingWord(mem []byte, width int) (*atomic.Uint32, uint) {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	skip := uintptr(p) & 3
	shift := uint(skip) * 8
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // big-endian
		shift = 32 - 8*uint(width) - shift
	}
	return (*atomic.Uint32)(unsafe.Add(p, -int(skip))), shift
}

// bellOffset is where header.bell starts, at most one line into the page.
func bellOffset() uint64 { return uint64(unsafe.Offsetof(header{}.bell)) }
