package element

import "unsafe"

// Size returns the bytes of one T.
func Size[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// View views the start of mem, which is aligned for any type, as n values.
func View[T any](mem []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), n)
}

// Bytes views values as bytes.
func Bytes[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*Size[T]())
}
