//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	goruntime "runtime"

	"github.com/ebitengine/purego"
)

// pointer is a CUdeviceptr: a number, never a Go pointer.
type pointer = uint64

// An ipcHandle is a CUipcMemHandle, which a call takes by value.
type ipcHandle struct{ words [8]uint64 }

// library has the driver's calls that this package makes. Each returns a CUresult.
type library struct {
	init        func(flags uint32) int32
	deviceGet   func(device *int32, ordinal int32) int32
	busID       func(id *byte, n, device int32) int32
	totalMem    func(n *uintptr, device int32) int32
	attribute   func(value *int32, attribute, device int32) int32
	retain      func(context *uintptr, device int32) int32
	release     func(device int32) int32
	setCurrent  func(context uintptr) int32
	alloc       func(p *pointer, n uintptr) int32
	free        func(p pointer) int32
	setPointer  func(value *uint64, attribute int32, p pointer) int32
	getPointer  func(value *uint64, attribute int32, p pointer) int32
	ipcGet      func(handle *ipcHandle, p pointer) int32
	ipcOpen     func(p *pointer, handle ipcHandle, flags uint32) int32
	ipcClose    func(p pointer) int32
	register    func(host *byte, n uintptr, flags uint32) int32
	unregister  func(host *byte) int32
	toDevice    func(dst pointer, src *byte, n uintptr) int32
	toHost      func(dst *byte, src pointer, n uintptr) int32
	copyAsync   func(dst, src pointer, n, stream uintptr) int32
	synchronize func(stream uintptr) int32
	handleFor   func(fd *int32, p pointer, n uintptr, kind int32, flags uint64) int32 // nil before CUDA 11.7
}

// soname is the file that NVIDIA's driver installs.
const soname = "libcuda.so.1"

// load loads the library at path and initializes it.
func load(path string) (*library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; install NVIDIA's driver (on Debian: libcuda1 and nvidia-driver), or have the container mount it", ErrAbsent, err)
	}
	l := &library{}
	for name, f := range map[string]any{
		"cuInit": &l.init, "cuDeviceGet": &l.deviceGet, "cuDeviceGetPCIBusId": &l.busID, "cuDeviceTotalMem_v2": &l.totalMem,
		"cuDeviceGetAttribute": &l.attribute, "cuDevicePrimaryCtxRetain": &l.retain, "cuDevicePrimaryCtxRelease_v2": &l.release,
		"cuCtxSetCurrent": &l.setCurrent, "cuMemAlloc_v2": &l.alloc, "cuMemFree_v2": &l.free,
		"cuPointerSetAttribute": &l.setPointer, "cuPointerGetAttribute": &l.getPointer,
		"cuIpcGetMemHandle": &l.ipcGet, "cuIpcOpenMemHandle_v2": &l.ipcOpen, "cuIpcCloseMemHandle": &l.ipcClose,
		"cuMemHostRegister_v2": &l.register, "cuMemHostUnregister": &l.unregister,
		"cuMemcpyHtoD_v2": &l.toDevice, "cuMemcpyDtoH_v2": &l.toHost, "cuMemcpyDtoDAsync_v2": &l.copyAsync,
		"cuStreamSynchronize": &l.synchronize,
	} {
		at, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("%w: %w; install a newer driver", ErrAbsent, err)
		}
		purego.RegisterFunc(f, at)
	}
	if at, err := purego.Dlsym(handle, "cuMemGetHandleForAddressRange"); err == nil {
		purego.RegisterFunc(&l.handleFor, at)
	}
	if err := l.check("cuInit", l.init(0)); err != nil {
		return nil, err
	}
	return l, nil
}

// check turns the result of a call into an error.
func (l *library) check(call string, code int32) error {
	if code == 0 {
		return nil
	}
	name, ok := codes[code]
	if !ok {
		name = "CUDA_ERROR"
	}
	return &Error{Call: call, Code: int(code), Name: name}
}

// codes names the results that this package's calls return, as in cuda.h.
var codes = map[int32]string{
	1: "CUDA_ERROR_INVALID_VALUE", outOfMemory: "CUDA_ERROR_OUT_OF_MEMORY", 3: "CUDA_ERROR_NOT_INITIALIZED",
	4: "CUDA_ERROR_DEINITIALIZED", 100: "CUDA_ERROR_NO_DEVICE", 101: "CUDA_ERROR_INVALID_DEVICE",
	201: "CUDA_ERROR_INVALID_CONTEXT", 205: "CUDA_ERROR_MAP_FAILED", 208: "CUDA_ERROR_ALREADY_MAPPED",
	217: "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", 304: "CUDA_ERROR_OPERATING_SYSTEM", 400: "CUDA_ERROR_INVALID_HANDLE",
	712: "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", 713: "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
	700: "CUDA_ERROR_ILLEGAL_ADDRESS", 719: "CUDA_ERROR_LAUNCH_FAILED", 800: "CUDA_ERROR_NOT_PERMITTED",
	801: "CUDA_ERROR_NOT_SUPPORTED", 999: "CUDA_ERROR_UNKNOWN",
}

// with makes a call in a context, which belongs to the thread.
func (l *library) with(context uintptr, call string, f func() int32) error {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	if err := l.check("cuCtxSetCurrent", l.setCurrent(context)); err != nil {
		return err
	}
	return l.check(call, f())
}
