package shm

import (
	"sync/atomic"
	"unsafe"
)

// The struct types lie over shared memory: their sizes are part of the layout.
var (
	_ [headerSize - unsafe.Sizeof(header{})]byte
	_ [entrySize - unsafe.Sizeof(entry{})]byte
	_ [unsafe.Sizeof(entry{}) - entrySize]byte
	_ [lengthsStart - unsafe.Sizeof(block{})]byte
	_ [unsafe.Sizeof(block{}) - lengthsStart]byte
)

// Precondition of all: mem starts at a page and holds the whole struct.

func headerAt(mem []byte) *header {
	_ = mem[headerSize-1]
	return (*header)(unsafe.Pointer(&mem[0]))
}

func entryAt(mem []byte, i uint32) *entry {
	at := mem[tableOffset+uint64(i)*entrySize:]
	_ = at[entrySize-1]
	return (*entry)(unsafe.Pointer(&at[0]))
}

// blockAt also requires offset to be a multiple of the page size.
func blockAt(mem []byte, offset uint64) *block {
	at := mem[offset:]
	_ = at[ringStart-1]
	return (*block)(unsafe.Pointer(&at[0]))
}

// wordAt is an 8-aligned word of a block.
func wordAt(mem []byte, offset uint64) *atomic.Uint64 {
	at := mem[offset:]
	_ = at[7]
	return (*atomic.Uint64)(unsafe.Pointer(&at[0]))
}
