//go:build linux

package memory

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const readWrite = unix.PROT_READ | unix.PROT_WRITE

// mapShared maps the first size bytes of fd for the rest of the process's life.
func mapShared(fd int, size int64) ([]byte, error) {
	p, err := unix.MmapPtr(fd, 0, nil, uintptr(size), readWrite, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), size), nil
}

// overlay replaces a mapping with anonymous memory, in one step for all threads.
func overlay(mem []byte) error {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE | unix.MAP_FIXED
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem)), readWrite, flags)
	return err
}

// wordAt returns the first word of aligned memory.
func wordAt(mem []byte) *atomic.Int64 { return (*atomic.Int64)(unsafe.Pointer(unsafe.SliceData(mem))) }
