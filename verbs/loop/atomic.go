package loop

import (
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// update carries out an atomic with the CPU's own, so that it may be mixed with
// the target's.
func update(p *qp, wr *driver.WorkRequest) outcome {
	op, width := wr.Atomic, int(wr.Width)
	switch wr.Op {
	case driver.OpFetchAdd:
		op, width = driver.AtomicAdd, 8
	case driver.OpCmpSwap:
		op, width = driver.AtomicCmpSwap, 8
	}
	m, mem, err := p.ctx.keys.open(wr.Remote, width, driver.RemoteAtomic)
	if err != nil {
		return denied(err)
	}
	defer m.done()
	if wr.Remote.Addr%uint64(width) != 0 {
		return outcome{verdict: failed, status: driver.RemoteInvalid,
			err: fmt.Errorf("%w: atomic of %d bytes at %#x", driver.ErrInvalid, width, wr.Remote.Addr)}
	}
	old := atomics.Apply(mem, op, wr.Operand, wr.Compare)
	if len(wr.Local) > 0 {
		atomics.PutUint(wr.Local[0].Mem, old)
	}
	return outcome{touched: op != driver.AtomicLoad}
}
