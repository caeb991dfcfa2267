package loop

import (
	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// update carries out an atomic with an atomic of the CPU. It may be mixed with
// the target's own.
func update(p *qp, wr *driver.WorkRequest) outcome {
	op, width := wq.Atomic(wr)
	m, mem, err := p.ctx.keys.open(wr.Remote, width, driver.RemoteAtomic)
	if err != nil {
		return denied(err)
	}
	defer m.done()
	old := atomics.Apply(mem, op, wr.Operand, wr.Compare)
	if len(wr.Local) > 0 {
		atomics.PutUint(wr.Local[0].Mem, old)
	}
	return outcome{touched: op != driver.AtomicLoad}
}

// accumulate carries out an atomic on each element.
func accumulate(p *qp, wr *driver.WorkRequest) outcome {
	from, to := wr.Extent()
	m, mem, err := p.ctx.keys.open(wr.Remote.Add(uint64(from)), to-from, driver.RemoteAtomic)
	if err != nil {
		return denied(err)
	}
	defer m.done()
	atomics.Accumulate(mem, from, wr)
	return outcome{touched: wr.Atomic != driver.AtomicLoad}
}
