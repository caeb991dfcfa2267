//go:build linux && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/gopgas/gopgas/device"
)

// A Buffer is memory of a GPU, of this process or of another one of the host. Its methods may be called from any
// goroutine.
type Buffer struct {
	gpu      *GPU
	at       pointer
	size     int
	imported bool
}

// Size returns the number of bytes. Kind: local.
func (b *Buffer) Size() int { return b.size }

// Attributes say what the driver knows of a buffer.
type Attributes struct {
	Device     bool // memory of a GPU, not of the host
	Ordinal    int  // of that GPU
	SyncMemops bool // copies complete in order with accesses of network cards
}

// Attributes asks the driver about b. Kind: local.
func (b *Buffer) Attributes() (a Attributes, err error) {
	var values [3]uint64
	for i, attribute := range []int32{pointerMemoryType, pointerOrdinal, pointerSyncMemops} {
		err := b.use("cuPointerGetAttribute", 0, 0, func() int32 { return b.gpu.lib.getPointer(&values[i], attribute, b.at) })
		if err != nil {
			return Attributes{}, err
		}
	}
	return Attributes{Device: uint32(values[0]) == memoryTypeDevice, Ordinal: int(int32(values[1])), SyncMemops: values[2] != 0}, nil
}

// Handle returns the name by which other processes of the host import b. Kind: local.
func (b *Buffer) Handle() (h Handle, err error) {
	var inner ipcHandle
	if err := b.use("cuIpcGetMemHandle", 0, 0, func() int32 { return b.gpu.lib.ipcGet(&inner, b.at) }); err != nil {
		return Handle{}, err
	}
	for i, word := range inner.words {
		binary.NativeEndian.PutUint64(h[8*i:], word)
	}
	binary.NativeEndian.PutUint64(h[64:], uint64(b.size))
	return h, nil
}

// DMABuf returns a dma-buf of all of b, by which other devices import it. The file is the caller's. It
// returns [ErrUnsupported] if the driver exports none. Kind: local.
func (b *Buffer) DMABuf() (*os.File, error) {
	lib, can := b.gpu.lib, int32(0)
	if err := b.use("cuDeviceGetAttribute", 0, 0, func() int32 { return lib.attribute(&can, deviceDMABuf, b.gpu.number) }); err != nil {
		return nil, err
	}
	if can == 0 || lib.handleFor == nil {
		return nil, fmt.Errorf("cuda: DMABuf: %w", ErrUnsupported)
	}
	fd := int32(-1)
	err := b.use("cuMemGetHandleForAddressRange", 0, 0, func() int32 { return lib.handleFor(&fd, b.at, uintptr(b.size), rangeDMABuf, 0) })
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "dma-buf"), nil
}

// Store copies src to b from byte at on, and Load the other way. Both return when the bytes are there.
// Kind: local.
func (b *Buffer) Store(at int, src []byte) error {
	if len(src) == 0 {
		return b.use("", at, 0, nil)
	}
	return b.use("cuMemcpyHtoD_v2", at, len(src), func() int32 {
		return b.gpu.lib.toDevice(b.at+pointer(at), &src[0], uintptr(len(src)))
	})
}

// Load copies bytes of b from byte at on to dst; see [Buffer.Store]. Kind: local.
func (b *Buffer) Load(at int, dst []byte) error {
	if len(dst) == 0 {
		return b.use("", at, 0, nil)
	}
	return b.use("cuMemcpyDtoH_v2", at, len(dst), func() int32 {
		return b.gpu.lib.toHost(&dst[0], b.at+pointer(at), uintptr(len(dst)))
	})
}

// Copy copies n bytes of src from byte from on to b from byte at on, by the GPU: over its own memory, NVLink
// or PCIe. It returns when the bytes are there. Either may be imported, and both are of one GPU value. Kind:
// local to the caller; the owners of imported memory take no part.
func (b *Buffer) Copy(at int, src *Buffer, from, n int) error {
	if src.gpu != b.gpu {
		return fmt.Errorf("cuda: Copy: buffers of two GPUs: import one of them with the other's: %w", device.ErrRange)
	}
	lib := b.gpu.lib
	b.gpu.mu.RLock()
	defer b.gpu.mu.RUnlock()
	if err := src.check("Copy", from, n); err != nil {
		return err
	}
	if err := b.check("Copy", at, n); err != nil || n == 0 {
		return err
	}
	err := b.gpu.call("cuMemcpyDtoDAsync_v2", func() int32 {
		return lib.copyAsync(b.at+pointer(at), src.at+pointer(from), uintptr(n), defaultStream)
	})
	if err != nil {
		return err
	}
	return b.gpu.call("cuStreamSynchronize", func() int32 { return lib.synchronize(defaultStream) })
}

// Free gives the memory back, or ends the import. A second call returns [ErrFreed]. Kind: local.
func (b *Buffer) Free() error {
	g := b.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := b.check("Free", 0, 0); err != nil {
		return err
	}
	if err := g.giveBack(b); err != nil {
		return err
	}
	delete(g.live, b)
	return nil
}

// use makes a call on n bytes of b. Without a name it only checks them.
func (b *Buffer) use(name string, at, n int, f func() int32) error {
	b.gpu.mu.RLock()
	defer b.gpu.mu.RUnlock()
	if err := b.check(name, at, n); err != nil || name == "" {
		return err
	}
	return b.gpu.call(name, f)
}

// check refuses a buffer that was freed, and bytes that are not in it. Precondition: the GPU's mu is held.
func (b *Buffer) check(call string, at, n int) error {
	if _, live := b.gpu.live[b]; !live {
		return fmt.Errorf("cuda: %s: %w", call, ErrFreed)
	}
	if at < 0 || n < 0 || at > b.size || n > b.size-at {
		return fmt.Errorf("cuda: %s: %d bytes at %d of %d: %w", call, n, at, b.size, device.ErrRange)
	}
	return nil
}
