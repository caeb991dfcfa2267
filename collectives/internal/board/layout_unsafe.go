package board

import "unsafe"

// The slice expressions check the lengths. Indexing a byte would be a plain read,
// which races with the atomics of other members.

func wordAt(mem []byte, offset int) *word {
	return (*word)(unsafe.Pointer(unsafe.SliceData(mem[offset : offset+lineSize])))
}

func queueLinesAt(mem []byte, offset int) *[queueLines]line {
	return (*[queueLines]line)(unsafe.Pointer(unsafe.SliceData(mem[offset : offset+queueLines*lineSize])))
}

// It compiles only if HeadSize has room for a head.
const _ = HeadSize - unsafe.Sizeof(head{})

func headAt(mem []byte) *head {
	return (*head)(unsafe.Pointer(unsafe.SliceData(mem[:HeadSize])))
}

// aligned reports whether mem begins at a multiple of a cache line.
func aligned(mem []byte) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%lineSize == 0
}

// same reports whether two slices begin at the same byte.
func same(x, y []byte) bool { return unsafe.SliceData(x) == unsafe.SliceData(y) }
