package window

import "unsafe"

func sizeOf[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// elements views the start of mem, which is aligned for any type, as n values.
func elements[T any](mem []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), n)
}

// bytesOf views values as bytes.
func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*sizeOf[T]())
}
