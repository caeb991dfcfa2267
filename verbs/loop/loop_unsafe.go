package loop

import "unsafe"

// addressOf is where memory starts: the number that peers know it by.
func addressOf(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }
