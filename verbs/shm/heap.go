//go:build linux

package shm

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// heapFD stands for a descriptor in the entry of heap memory. No process has so many.
const heapFD = math.MaxUint64

// errHeap says that requests reach memory by copies of the system or by its owner's CPU.
var errHeap = fmt.Errorf("shm: %w: the peer's heap cannot be mapped", driver.ErrUnsupported)

// heaps holds the registrations of heap memory that peers reach.
type heaps struct {
	mu    sync.RWMutex // read-locked while a request of a peer uses the memory
	byKey map[driver.Key]*MR
	count atomic.Int32
}

// admit enters a registration. Precondition: c.mu is held.
func (c *Context) admit(m *MR) {
	h := &c.heaps
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byKey == nil {
		h.byKey = map[driver.Key]*MR{}
	}
	h.byKey[m.key] = m
	h.count.Add(1)
	c.keepServing()
}

// expel takes a registration out. When it returns, this CPU executes no request of a peer on the
// memory any more.
func (c *Context) expel(m *MR) {
	h := &c.heaps
	h.mu.Lock()
	delete(h.byKey, m.key)
	h.mu.Unlock()
	h.count.Add(-1)
	c.bell.Ring() // serve may end
}

// The system copies between the processes, or refuses to.
const (
	copiesUnknown uint32 = iota
	copiesWork
	copiesFail
)

// probe learns whether the system copies between this process and the peer, whose control
// memory lies at an address there. It reads the peer's token, and writes the word of the
// header that is there for that. So it does not take another process for the peer.
func (p *peer) probe(at uint64) {
	if p.copies.Load() != copiesUnknown {
		return
	}
	got := make([]byte, 4*8)
	if p.refuses {
		p.copies.Store(copiesFail)
		return
	}
	h := headerAt(p.control.Bytes())
	ok := p.copy(false, at, got) == nil && wordAt(got, 0).Load() == magic &&
		wordAt(got, 8).Load() == h.token[0].Load() && wordAt(got, 16).Load() == h.token[1].Load() &&
		p.copy(true, at+3*8, got[:8]) == nil
	if ok {
		p.copies.CompareAndSwap(copiesUnknown, copiesWork)
	} else {
		p.copies.CompareAndSwap(copiesUnknown, copiesFail)
	}
}

// copy copies mem to the peer's memory at an address, or from there.
func (p *peer) copy(out bool, at uint64, mem []byte) error {
	for len(mem) > 0 {
		local := [1]unix.Iovec{{Base: &mem[0]}}
		local[0].SetLen(len(mem))
		remote := [1]unix.RemoteIovec{{Base: uintptr(at), Len: len(mem)}}
		var n int
		var err error
		if out {
			n, err = unix.ProcessVMWritev(int(p.id.pid), local[:], remote[:], 0)
		} else {
			n, err = unix.ProcessVMReadv(int(p.id.pid), local[:], remote[:], 0)
		}
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n <= 0 || n > len(mem):
			return unix.EIO
		}
		mem, at = mem[n:], at+uint64(n)
	}
	return nil
}

// copyAll copies the segments of a WRITE or a READ.
func (p *peer) copyAll(wr *driver.WorkRequest) error {
	at := wr.Remote.Addr
	for _, seg := range wr.Local {
		if err := p.copy(wr.Op != driver.OpRead, at, seg.Mem); err != nil {
			return err
		}
		at += uint64(len(seg.Mem))
	}
	return nil
}

// copied has the system carry out wr, if it can. ok is false if the peer's CPU must. A process
// that has ended may have left its number to another one: then the copies count for nothing.
func (q *QP) copied(wr *driver.WorkRequest, n int) (ok bool, err error) {
	p := q.remote.peer
	if n <= driver.WholeRead || wr.Op != driver.OpRead && wr.Op != driver.OpWrite && wr.Op != driver.OpWriteImm ||
		p.copies.Load() != copiesWork {
		return false, nil
	}
	if p.ended() {
		return false, fail(driver.RetryExceeded, fmt.Errorf("%w: process %d has ended", driver.ErrLost, p.id.pid))
	}
	err = p.copyAll(wr)
	switch {
	case errors.Is(err, unix.ESRCH) || p.ended():
		return false, fail(driver.RetryExceeded, fmt.Errorf("%w: process %d has ended", driver.ErrLost, p.id.pid))
	case errors.Is(err, unix.EFAULT):
		return false, fail(driver.RemoteAccess, fmt.Errorf("shm: %w: process %d does not map %d bytes at %#x", driver.ErrAccess, p.id.pid, n, wr.Remote.Addr))
	case err == nil:
		atomics.Fence()
		q.wakePeer = q.remote.bell
		return true, nil
	}
	p.copies.Store(copiesFail) // the system's mind has changed
	return false, nil
}
