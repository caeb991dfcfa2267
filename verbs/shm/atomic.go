package shm

import (
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// atomic executes op on the peer's word with an instruction of this CPU.
func (q *QP) atomic(wr *driver.WorkRequest, op driver.AtomicOp, width int) error {
	if width != 1 && width != 2 && width != 4 && width != 8 || op < driver.AtomicAdd || op > driver.AtomicStore {
		return fail(driver.RemoteInvalid, fmt.Errorf("%w: atomic operation %d of %d bytes", driver.ErrInvalid, op, width))
	}
	if len(wr.Local) > 0 && len(wr.Local[0].Mem) < width {
		return fail(driver.LocalLength, fmt.Errorf("%w: %d bytes for a result of %d", driver.ErrInvalid, len(wr.Local[0].Mem), width))
	}
	mem, err := q.remote.peer.resolve(wr.Remote, uint64(width), driver.RemoteAtomic)
	if err != nil {
		return err
	}
	if !aligned(mem, uintptr(width)) {
		return fail(driver.RemoteInvalid, fmt.Errorf("%w: an atomic of %d bytes at %#x", driver.ErrInvalid, width, wr.Remote.Addr))
	}
	old := atomics.Apply(mem, op, wr.Operand, wr.Compare)
	if len(wr.Local) > 0 && op != driver.AtomicStore {
		atomics.PutUint(wr.Local[0].Mem[:width], old)
	}
	q.wakePeer = q.remote.bell
	return nil
}
