//go:build linux

package shm

import (
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// atomic executes op on the peer's word with an instruction of this CPU.
func (q *QP) atomic(wr *driver.WorkRequest) error {
	op, width := wq.Atomic(wr)
	mem, err := q.remote.peer.resolve(wr.Remote, uint64(width), driver.RemoteAtomic)
	if err != nil {
		return err
	}
	if !aligned(mem, uintptr(width)) { // the peer's table gives the address of mem, so the peer could misalign it
		return fail(driver.RemoteInvalid, fmt.Errorf("%w: an atomic of %d bytes at %#x", driver.ErrInvalid, width, wr.Remote.Addr))
	}
	old := atomics.Apply(mem, op, wr.Operand, wr.Compare)
	if len(wr.Local) > 0 {
		atomics.PutUint(wr.Local[0].Mem, old)
	}
	q.wakePeer = q.remote.bell
	return nil
}

// accumulate executes an atomic on each of the peer's elements.
func (q *QP) accumulate(wr *driver.WorkRequest) error {
	from, to := wr.Extent()
	mem, err := q.remote.peer.resolve(wr.Remote.Add(uint64(from)), uint64(to-from), driver.RemoteAtomic)
	if err != nil {
		return err
	}
	if !aligned(mem, uintptr(wr.Width)) { // as in atomic
		return fail(driver.RemoteInvalid, fmt.Errorf("%w: an accumulate in elements of %d bytes at %#x", driver.ErrInvalid, wr.Width, wr.Remote.Addr))
	}
	atomics.Accumulate(mem, from, wr)
	q.wakePeer = q.remote.bell
	return nil
}
