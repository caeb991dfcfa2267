package verbs

import "unsafe"

// contains reports whether all of part lies within whole.
func contains(whole, part []byte) bool {
	w := uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	p := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	return p >= w && p-w <= uintptr(len(whole)) && uintptr(len(part)) <= uintptr(len(whole))-(p-w)
}
