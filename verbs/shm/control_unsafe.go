//go:build linux

package shm

import (
	"sync/atomic"
	"unsafe"
)

// These assertions fix the sizes of structs in shared memory: they are part of
// the layout.
var (
	_ [headerSize - unsafe.Sizeof(header{})]byte
	_ [entrySize - unsafe.Sizeof(entry{})]byte
	_ [unsafe.Sizeof(entry{}) - entrySize]byte
	_ [lengthsStart - unsafe.Sizeof(block{})]byte
	_ [unsafe.Sizeof(block{}) - lengthsStart]byte
)

// Precondition of all: mem starts at a page and holds the whole struct. Slice
// expressions check bounds without reading.

func headerAt(mem []byte) *header {
	return (*header)(unsafe.Pointer(unsafe.SliceData(mem[:headerSize])))
}

func entryAt(mem []byte, i uint32) *entry {
	at := tableOffset + uint64(i)*entrySize
	return (*entry)(unsafe.Pointer(unsafe.SliceData(mem[at : at+entrySize])))
}

// blockAt also requires offset to be a multiple of the page size.
func blockAt(mem []byte, offset uint64) *block {
	return (*block)(unsafe.Pointer(unsafe.SliceData(mem[offset : offset+ringStart])))
}

// wordAt returns an 8-aligned word of a block.
func wordAt(mem []byte, offset uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(mem[offset : offset+8])))
}

// bellOffset returns the offset of header.bell.
func bellOffset() uint64 { return uint64(unsafe.Offsetof(header{}.bell)) }

func aligned(mem []byte, width uintptr) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%width == 0
}

// addressOf returns the address of mem in this process.
func addressOf(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }
