//go:build linux

package shm

import (
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// carryOut executes a request of a peer on heap memory of this process. It checks all of it.
// operands are this side's own copy. The result lies there or in room, and fits there.
func (c *Context) carryOut(a *request, operands, room []byte) ([]byte, error) {
	n, need := int(a.bytes), driver.RemoteAtomic
	switch a.op {
	case driver.OpWrite:
		need = driver.RemoteWrite
	case driver.OpRead:
		need = driver.RemoteRead
	case driver.OpAtomic:
		n = int(a.width)
	case driver.OpAccumulate:
	default:
		return nil, refuse("operation %d", a.op)
	}
	if n <= 0 || n > len(room) || a.op != driver.OpRead && a.op != driver.OpAtomic && n != len(operands) {
		return nil, refuse("%d bytes, operands of %d", n, len(operands))
	}
	c.heaps.mu.RLock()
	defer c.heaps.mu.RUnlock()
	m := c.heaps.byKey[a.key]
	if m == nil {
		return nil, fmt.Errorf("shm: %w: key %v is not valid (any more)", driver.ErrAccess, a.key)
	}
	at := a.addr - m.addr // below m.addr wraps around
	if size := uint64(len(m.mem)); at > size || uint64(n) > size-at || m.access&need != need {
		return nil, fmt.Errorf("shm: %w: %d bytes at %d of %d, rights %v of %v", driver.ErrAccess, n, at, size, need, m.access)
	}
	mem := m.mem[at : at+uint64(n) : at+uint64(n)]
	switch a.op {
	case driver.OpWrite:
		storeWhole(mem, operands)
		return nil, nil
	case driver.OpRead:
		return loadWhole(room[:n], mem), nil
	case driver.OpAtomic:
		return a.update(mem, room)
	}
	return a.accumulate(mem, operands)
}

// update carries out one atomic.
func (a *request) update(mem, room []byte) ([]byte, error) {
	width := int(a.width)
	if !atomics.Fits(a.atomic, width) || width > 8 || !aligned(mem, uintptr(width)) {
		return nil, refuse("atomic %d of %d bytes at %#x", a.atomic, width, a.addr)
	}
	old := atomics.Apply(mem, a.atomic, a.operand, a.compare)
	if !a.fetch {
		return nil, nil
	}
	atomics.PutUint(room[:width], old)
	return room[:width], nil
}

// accumulate carries out an atomic on each element.
func (a *request) accumulate(mem, operands []byte) ([]byte, error) {
	width := int(a.width)
	if !atomics.Fits(a.atomic, width) || a.atomic == driver.AtomicCmpSwap || len(mem)%width != 0 || !aligned(mem, uintptr(width)) {
		return nil, refuse("accumulate %d in elements of %d bytes at %#x", a.atomic, width, a.addr)
	}
	var old []byte
	if a.fetch {
		old = operands
	}
	atomics.ApplyEach(mem, a.atomic, width, operands, old)
	return old, nil
}

func refuse(format string, args ...any) error {
	return fail(driver.RemoteInvalid, fmt.Errorf("shm: %w: %s", driver.ErrInvalid, fmt.Sprintf(format, args...)))
}

// storeWhole copies src to dst. It stores an aligned element of up to 8 bytes, or aligned words
// of 8 bytes, whole.
func storeWhole(dst, src []byte) {
	n := len(dst)
	switch {
	case n <= 8 && n&(n-1) == 0 && aligned(dst, uintptr(n)):
		atomics.Apply(dst, driver.AtomicStore, atomics.Uint(src), 0)
	case n%8 == 0 && aligned(dst, 8):
		for i := 0; i < n; i += 8 {
			atomics.Word64(dst[i:]).Store(binary.NativeEndian.Uint64(src[i:]))
		}
	default:
		copy(dst, src)
	}
}

// loadWhole copies src to dst as storeWhole does, and returns dst.
func loadWhole(dst, src []byte) []byte {
	n := len(src)
	switch {
	case n <= 8 && n&(n-1) == 0 && aligned(src, uintptr(n)):
		atomics.PutUint(dst, atomics.Apply(src, driver.AtomicLoad, 0, 0))
	case n%8 == 0 && aligned(src, 8):
		atomics.LoadWords(dst, src)
	default:
		copy(dst, src)
	}
	return dst
}
