//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/gopgas/gopgas/device"
)

// A GPU is one device, in its primary context, which all libraries of the process share. Its methods may
// be called from any goroutine.
type GPU struct {
	lib     *library
	number  int32 // a CUdevice
	context uintptr
	about   device.About

	mu     sync.RWMutex     // held for reading while a call uses a buffer
	live   map[any]struct{} // each *Buffer and *Registration that is not freed
	closed bool
}

// Open opens the GPU with an ordinal number. It returns [ErrAbsent] if this host has no driver, and an
// [*Error] if the driver refuses, such as for want of a GPU. Kind: local.
func Open(ordinal int) (*GPU, error) {
	lib, err := load(soname)
	if err != nil {
		return nil, err
	}
	return lib.open(ordinal)
}

// open returns the GPU of a number in CUDA's order. It retains the device's primary context, which
// other libraries of the process share.
func (l *library) open(ordinal int) (*GPU, error) {
	g := &GPU{lib: l, about: device.About{Kind: device.GPU, Node: -1, Align: granule}, live: map[any]struct{}{}}
	var id [16]byte
	var size uintptr
	for _, c := range []struct {
		call string
		make func() int32
	}{
		{"cuDeviceGet", func() int32 { return l.deviceGet(&g.number, int32(ordinal)) }},
		{"cuDeviceGetPCIBusId", func() int32 { return l.busID(&id[0], int32(len(id)), g.number) }},
		{"cuDeviceTotalMem_v2", func() int32 { return l.totalMem(&size, g.number) }},
		{"cuDevicePrimaryCtxRetain", func() int32 { return l.retain(&g.context, g.number) }},
	} {
		if err := l.check(c.call, c.make()); err != nil {
			return nil, err
		}
	}
	name, _, _ := bytes.Cut(id[:], []byte{0})
	g.about.Device, g.about.Size = strings.ToLower(string(name)), int(size)
	if text, err := os.ReadFile(filepath.Join("/sys/bus/pci/devices", g.about.Device, "numa_node")); err == nil {
		if node, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			g.about.Node = node
		}
	}
	return g, nil
}

// About describes the GPU's memory. Device is its PCI address, by which a catalog.Topology knows
// distances. Kind: local.
func (g *GPU) About() device.About { return g.about }

// granule is the page of GPU memory: a range of whole ones can be exported.
const granule = 2 << 20

// syncMemops and its like are attributes and flags of cuda.h.
const (
	pointerMemoryType = 2
	pointerSyncMemops = 6
	pointerOrdinal    = 9
	memoryTypeDevice  = 2
	deviceDMABuf      = 124 // whether the driver exports them
	rangeDMABuf       = 1
	ipcLazyPeerAccess = 1
	defaultStream     = 0
)

// Allocate takes n bytes of the GPU's memory, rounded up to whole pages of 2 MiB, which hold anything. It
// returns device.ErrFull if there are none. Copies of the driver then complete in order with accesses of
// network cards to the memory. Kind: local.
func (g *GPU) Allocate(n int) (*Buffer, error) {
	if n <= 0 {
		return nil, fmt.Errorf("cuda: Allocate of %d bytes: %w", n, device.ErrRange)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	b := &Buffer{gpu: g, size: (n + granule - 1) &^ (granule - 1)}
	if err := g.call("cuMemAlloc_v2", func() int32 { return g.lib.alloc(&b.at, uintptr(b.size)) }); err != nil {
		return nil, err
	}
	return g.keep(b)
}

// keep counts a new buffer among what lives, and has copies to it complete before they return. It gives the
// memory back if the driver refuses. Precondition: mu is held.
func (g *GPU) keep(b *Buffer) (*Buffer, error) {
	on := uint64(1)
	if err := g.call("cuPointerSetAttribute", func() int32 { return g.lib.setPointer(&on, pointerSyncMemops, b.at) }); err != nil {
		return nil, errors.Join(err, g.giveBack(b))
	}
	g.live[b] = struct{}{}
	return b, nil
}

// giveBack frees the memory of b, or ends its import. Precondition: mu is held.
func (g *GPU) giveBack(b *Buffer) error {
	if b.imported {
		return g.call("cuIpcCloseMemHandle", func() int32 { return g.lib.ipcClose(b.at) })
	}
	return g.call("cuMemFree_v2", func() int32 { return g.lib.free(b.at) })
}

// A Handle names memory of a GPU to the other processes of the host: a CUipcMemHandle, and the length in bytes. It is
// valid until its owner frees the buffer.
type Handle [64 + 8]byte

// Import maps the memory of another process. The caller frees it before the owner frees its own. A process
// cannot import its own memory. Kind: local.
func (g *GPU) Import(h Handle) (*Buffer, error) {
	var inner ipcHandle
	for i := range inner.words {
		inner.words[i] = binary.NativeEndian.Uint64(h[8*i:])
	}
	size := binary.NativeEndian.Uint64(h[64:])
	if size == 0 || size > math.MaxInt {
		return nil, fmt.Errorf("cuda: Import of %d bytes: %w", size, device.ErrRange)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	b := &Buffer{gpu: g, size: int(size), imported: true}
	if err := g.call("cuIpcOpenMemHandle_v2", func() int32 { return g.lib.ipcOpen(&b.at, inner, ipcLazyPeerAccess) }); err != nil {
		return nil, err
	}
	return g.keep(b)
}

// Close gives the GPU back. It returns device.ErrTaken, and does nothing, while there are buffers or registrations. A
// second call does nothing. Kind: local.
func (g *GPU) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return nil
	case len(g.live) > 0:
		return fmt.Errorf("cuda: Close: %w: %d buffers and registrations are in use; free them first", device.ErrTaken, len(g.live))
	}
	g.closed = true
	return g.lib.check("cuDevicePrimaryCtxRelease_v2", g.lib.release(g.number))
}

// call makes a call in the GPU's context. Precondition: mu is held, for reading at least.
func (g *GPU) call(name string, f func() int32) error {
	if g.closed {
		return fmt.Errorf("cuda: %s: %w", name, ErrFreed)
	}
	return g.lib.with(g.context, name, f)
}
