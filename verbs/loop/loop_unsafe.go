package loop

import "unsafe"

// addressOf returns the start of memory as the number that peers use.
func addressOf(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }
