package memory

import "github.com/gopgas/gopgas/verbs/driver"

// Alignment is that of heap memory: a cache line, so that no two blocks share
// one.
const Alignment = 64

// HugePage is the size of a huge page, in bytes.
const HugePage = 2 << 20

// Heap returns n zeroed bytes of the Go heap that start at a cache line. The
// garbage collector frees them like any slice; only this process reaches them.
func Heap(n int) driver.Memory { return HeapAligned(n, Alignment) }

// HeapAligned is Heap for memory that starts at a multiple of align, a power of two.
func HeapAligned(n, align int) driver.Memory {
	block := make([]byte, max(n, 0)+align)
	skip := int(-address(block) & uintptr(align-1))
	return driver.Memory{Kind: driver.KindHeap, Bytes: block[skip : skip+max(n, 0) : skip+max(n, 0)], FD: -1}
}
