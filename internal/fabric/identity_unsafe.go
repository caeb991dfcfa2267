package fabric

import "unsafe"

// address returns where mem begins. Registered memory does not move.
func address(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }
