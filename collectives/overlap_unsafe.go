package collectives

import "unsafe"

// overlap reports whether x and y share memory and do not begin at the same byte with
// the same length.
func overlap(x, y []byte) bool {
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	a, b := uintptr(unsafe.Pointer(unsafe.SliceData(x))), uintptr(unsafe.Pointer(unsafe.SliceData(y)))
	return a < b+uintptr(len(y)) && b < a+uintptr(len(x)) && (a != b || len(x) != len(y))
}

// within reports whether x is exactly the bytes of y from lo on, or apart from y.
func within(x, y []byte, lo int) bool {
	return !overlap(x, y) || lo+len(x) <= len(y) && unsafe.SliceData(x) == unsafe.SliceData(y[lo:])
}
