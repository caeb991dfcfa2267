package element

import (
	"reflect"
	"unsafe"
)

// Same reports whether two types are the same. The comparison of interfaces would be a call:
// their dynamic type is that of package reflect, and so their pointers tell.
func Same(x, y reflect.Type) bool {
	return (*[2]uintptr)(unsafe.Pointer(&x))[1] == (*[2]uintptr)(unsafe.Pointer(&y))[1]
}

// Size returns the size of a T in bytes.
func Size[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// Align returns a number of bytes that the address of each T is a multiple of.
func Align[T any]() int {
	var zero T
	return int(unsafe.Alignof(zero))
}

// Offset returns the distance in bytes from the beginning of whole to that of part. If part, which
// may be empty, does not lie in whole, ok is false.
func Offset[T, U any](whole []T, part []U) (offset int, ok bool) {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	bytes := len(whole) * Size[T]()
	if at < from || at-from > uintptr(bytes) || len(part)*Size[U]() > bytes-int(at-from) {
		return 0, false
	}
	return int(at - from), true
}

// Address returns where values begin.
func Address[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// Words returns the whole words of 8 bytes in which mem lies, and the offset of mem there. A variable
// or a block of the heap begins and ends in such a word of the program's own.
func Words(mem []byte) (words []byte, offset int) {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	offset = int(uintptr(p) % 8)
	return unsafe.Slice((*byte)(unsafe.Add(p, -offset)), (offset+len(mem)+7)&^7), offset
}

// View returns the start of mem, which is aligned for any type, as n values.
func View[T any](mem []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), n)
}

// First returns the start of mem as the first of its values. Slice is its
// inverse.
func First[T any](mem []byte) *T { return (*T)(unsafe.Pointer(unsafe.SliceData(mem))) }

// Slice returns the n values from first on.
func Slice[T any](first *T, n int) []T { return unsafe.Slice(first, n) }

// Bytes returns the memory of values as bytes.
func Bytes[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*Size[T]())
}
