package bulk

import "unsafe"

// within reports whether dst begins behind the first byte of src and in src. Pieces copied
// in order would then overwrite bytes of src ahead of their copy.
func within(dst, src []byte) bool {
	d, s := uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(unsafe.Pointer(unsafe.SliceData(src)))
	return d > s && d-s < uintptr(len(src))
}
