package store

import "unsafe"

// within reports whether all of part lies in whole, by its addresses.
func within(whole, part []float32) bool {
	if len(whole) == 0 {
		return false
	}
	from, to := uintptr(unsafe.Pointer(unsafe.SliceData(whole))), uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	return to >= from && to+4*uintptr(len(part)) <= from+4*uintptr(len(whole))
}
