package element

import "unsafe"

// Size returns the size of a T in bytes.
func Size[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
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
