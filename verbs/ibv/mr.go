//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A region is registered memory. Its pages stay where they are until Close.
type region struct {
	dev *device
	mem []byte

	mu   sync.Mutex
	mr   *C.struct_ibv_mr // nil once closed
	lkey driver.Key
	rkey driver.Key
	pins goruntime.Pinner
}

// RegMR registers mem with the device. A peer that knows the key has the rights
// in access. RegMR is local; the kernel pins the pages, and memory of the Go
// heap stays reachable.
func (d *device) RegMR(_ context.Context, mem driver.Memory, access driver.Access) (driver.MR, error) {
	if access&^driver.AllAccess != 0 || len(mem.Bytes) == 0 {
		return nil, fmt.Errorf("%w: %d bytes with rights %#x", driver.ErrInvalid, len(mem.Bytes), uint8(access))
	}
	d.making.RLock()
	defer d.making.RUnlock()
	if d.gone.Load() {
		return nil, driver.ErrClosed
	}
	r := &region{dev: d, mem: mem.Bytes}
	if mem.Kind == driver.KindHeap {
		r.pins.Pin(&mem.Bytes[0])
	}
	mr, err := d.hw.register(mem, access)
	if mr == nil {
		r.pins.Unpin()
		if refusal := errors.Is(err, unix.EFAULT) || errors.Is(err, unix.EOPNOTSUPP); refusal && !mem.Kind.Paged() {
			err = &driver.KindError{Kind: mem.Kind, Provider: "ibv", Err: err}
		}
		if errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EAGAIN) {
			err = fmt.Errorf("%w; the limit of locked memory may be too low, see `ulimit -l`", err)
		}
		return nil, wrap(err, fmt.Sprintf("registering %d bytes", len(mem.Bytes)))
	}
	r.mr = mr
	r.lkey, r.rkey = driver.Key{Lo: uint64(mr.lkey)}, driver.Key{Lo: uint64(mr.rkey)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.regions[r] = struct{}{}
	return r, nil
}

// register has the device know mem. The kernel finds a dma-buf by its descriptor, and all else by its pages.
func (hw *hardware) register(mem driver.Memory, access driver.Access) (mr *C.struct_ibv_mr, err error) {
	addr, length := C.uint64_t(addressOf(mem.Bytes)), C.uint64_t(len(mem.Bytes))
	if mem.Kind == driver.KindDMABuf {
		mr, err = C.gopgas_reg_dmabuf_mr(hw.pd, C.uint64_t(mem.Offset), length, addr, C.int(mem.FD), accessFlags(access))
	} else {
		mr, err = C.gopgas_reg_mr(hw.pd, addr, length, accessFlags(access))
	}
	return mr, err
}

// accessFlags returns the rights as libibverbs writes them. A local read needs none.
func accessFlags(a driver.Access) C.int {
	flags := C.int(0)
	for _, f := range [...]struct {
		right driver.Access
		flag  C.int
	}{
		{driver.LocalWrite, C.IBV_ACCESS_LOCAL_WRITE},
		{driver.RemoteWrite, C.IBV_ACCESS_REMOTE_WRITE},
		{driver.RemoteRead, C.IBV_ACCESS_REMOTE_READ},
		{driver.RemoteAtomic, C.IBV_ACCESS_REMOTE_ATOMIC},
	} {
		if a&f.right != 0 {
			flags |= f.flag
		}
	}
	return flags
}

func (r *region) Addr() uint64     { return addressOf(r.mem) }
func (r *region) LKey() driver.Key { return r.lkey }
func (r *region) RKey() driver.Key { return r.rkey }

// Close invalidates the keys. When it returns, the device touches the memory no
// more. It is idempotent.
func (r *region) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mr == nil {
		return nil
	}
	if rc := C.ibv_dereg_mr(r.mr); rc != 0 {
		return wrap(errnoError(rc), "deregistering memory")
	}
	r.mr = nil
	r.pins.Unpin()
	r.dev.mu.Lock()
	delete(r.dev.regions, r)
	r.dev.mu.Unlock()
	return nil
}
