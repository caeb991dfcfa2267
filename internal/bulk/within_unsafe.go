package bulk

import "unsafe"

// within reports whether dst begins in src. Pieces copied in order may then overwrite bytes of
// src ahead of their copy.
func within(dst, src []byte) bool {
	d, s := uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(unsafe.Pointer(unsafe.SliceData(src)))
	return d >= s && d-s < uintptr(len(src))
}

// toLine returns the number of bytes of mem ahead of its first whole line.
func toLine(mem []byte) int { return int(-uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % line) }
