package window

import (
	"sync/atomic"
	"unsafe"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/verbs/driver"
)

// isFloat reports whether T can hold a fraction: one half stays one half.
func isFloat[T Number]() bool {
	half := T(1)
	half /= 2
	return half != 0
}

// toBits returns v's memory as an unsigned number of its width.
func toBits[T any](v T) uint64 {
	return atomics.Uint(unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)))
}

// fromBits is the inverse of toBits.
func fromBits[T any](bits uint64) (v T) {
	atomics.PutUint(unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)), bits)
	return v
}

// addNative is FetchAdd on mapped memory: one locked add for whole words.
func addNative[T Number](p *T, delta T) T {
	switch unsafe.Sizeof(delta) {
	case 8:
		d := *(*uint64)(unsafe.Pointer(&delta))
		old := (*atomic.Uint64)(unsafe.Pointer(p)).Add(d) - d
		return *(*T)(unsafe.Pointer(&old))
	case 4:
		d := *(*uint32)(unsafe.Pointer(&delta))
		old := (*atomic.Uint32)(unsafe.Pointer(p)).Add(d) - d
		return *(*T)(unsafe.Pointer(&old))
	}
	return fromBits[T](atomics.Apply(element.Bytes(unsafe.Slice(p, 1)), driver.AtomicAdd, toBits(delta), 0))
}

// compareSwapNative is CompareSwap on mapped memory.
func compareSwapNative[T Number](p *T, old, v T) T {
	if unsafe.Sizeof(v) != 8 {
		return fromBits[T](atomics.Apply(element.Bytes(unsafe.Slice(p, 1)), driver.AtomicCmpSwap, toBits(v), toBits(old)))
	}
	word := (*atomic.Uint64)(unsafe.Pointer(p))
	for {
		if word.CompareAndSwap(*(*uint64)(unsafe.Pointer(&old)), *(*uint64)(unsafe.Pointer(&v))) {
			return old
		}
		// The element may have changed since the load: then try again.
		if seen := word.Load(); seen != *(*uint64)(unsafe.Pointer(&old)) {
			return *(*T)(unsafe.Pointer(&seen))
		}
	}
}
