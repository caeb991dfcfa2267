package board

import "unsafe"

// The slice expressions check the lengths. Indexing a byte would be a plain read,
// which races with the atomics of other members.

func wordAt(mem []byte, offset int) *word {
	return (*word)(unsafe.Pointer(unsafe.SliceData(mem[offset : offset+lineSize])))
}

func lineAt(mem []byte, offset int) *line {
	return (*line)(unsafe.Pointer(unsafe.SliceData(mem[offset : offset+lineSize])))
}

func linesAt[L [lines]line | [queueLines]line](mem []byte, offset int) *L {
	return (*L)(unsafe.Pointer(unsafe.SliceData(mem[offset:][:unsafe.Sizeof(*new(L))])))
}

func waitersAt(mem []byte, offset int) *waiters {
	return (*waiters)(unsafe.Pointer(unsafe.SliceData(mem[offset : offset+MaxMembers/8])))
}

// aligned reports whether mem begins at a multiple of a cache line.
func aligned(mem []byte) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%lineSize == 0
}

// same reports whether two slices begin at the same byte.
func same(x, y []byte) bool { return unsafe.SliceData(x) == unsafe.SliceData(y) }
