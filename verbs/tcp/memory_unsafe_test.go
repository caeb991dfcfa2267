//go:build linux

package tcp_test

import "unsafe"

// heap returns n bytes of the Go heap, 64-aligned.
func heap(n int) []byte {
	b := make([]byte, n+64)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
	return b[skip : skip+n : skip+n]
}
