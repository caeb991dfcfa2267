//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/device"
)

// Errors of this package. Match them with errors.Is.
var (
	// ErrAbsent: this host has no driver of NVIDIA, or one that lacks a call that this package needs.
	ErrAbsent = errors.New("no CUDA driver")
	// ErrFreed: the buffer or the registration was freed, or its GPU closed.
	ErrFreed = errors.New("GPU memory was freed")
	// ErrUnsupported: this driver exports no dma-bufs. The open kernel modules of CUDA 11.7 and later do.
	ErrUnsupported = errors.New("the driver exports no dma-bufs (open kernel modules of CUDA 11.7 and later do)")
)

// An Error is a call of the driver that failed.
type Error struct {
	Call string // as in cuda.h
	Code int    // a CUresult
	Name string // of the code, such as CUDA_ERROR_INVALID_VALUE, if this package knows it, else CUDA_ERROR
}

// Error returns the call of the driver's library and its code.
func (e *Error) Error() string { return fmt.Sprintf("cuda: %s: %s (%d)", e.Call, e.Name, e.Code) }

// outOfMemory is CUDA_ERROR_OUT_OF_MEMORY.
const outOfMemory = 2

// Unwrap returns device.ErrFull if the GPU has no memory left.
func (e *Error) Unwrap() error {
	if e.Code == outOfMemory {
		return device.ErrFull
	}
	return nil
}
