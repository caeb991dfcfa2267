package wait

import (
	"sync/atomic"
	"unsafe"
)

func word(addr *atomic.Uint32) uintptr { return uintptr(unsafe.Pointer(addr)) }
