package fabric

import (
	"context"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// An Atomic names one atomic operation on a word of 1, 2, 4 or 8 bytes.
type Atomic struct {
	Op      driver.AtomicOp
	Width   uint8
	Operand uint64
	Compare uint64 // of AtomicCmpSwap
}

// Fetch applies a at offset, a multiple of its width, and returns the value
// that was there, zero-extended.
func (r *Remote) Fetch(ctx context.Context, offset int, a Atomic) (old uint64, err error) {
	p := r.Peer
	p.Stats.count(int(a.Width))
	if !p.bind.info.ExtendedAtomics {
		return r.emulate(ctx, offset, a)
	}
	o := p.f.ops.take(r)
	o.atomic(0, r.addr.Add(uint64(offset)), a)
	return o.fetch(ctx, a.Width)
}

// fetch posts o's one atomic request, waits for its result of width bytes, and
// recycles o.
func (o *op) fetch(ctx context.Context, width uint8) (uint64, error) {
	o.seg[0] = driver.Segment{Mem: o.value[0][:width]}
	o.wr[0].ID, o.wr[0].Local, o.wr[0].Flags = o.id, o.seg[:1], driver.Signaled
	if _, err := o.start(ctx, 1); err != nil {
		return 0, err
	}
	err := o.await(ctx)
	old := atomics.Uint(o.value[0][:width])
	o.f.ops.give(o)
	return old, err
}

// Update is Fetch without a result: it waits for nothing but room in the queue,
// and a later failure is the peer's error.
func (r *Remote) Update(ctx context.Context, offset int, a Atomic) error {
	p := r.Peer
	if !p.bind.info.ExtendedAtomics {
		_, err := r.Fetch(ctx, offset, a)
		return err
	}
	p.Stats.count(int(a.Width))
	o := p.f.ops.take(r)
	o.atomic(0, r.addr.Add(uint64(offset)), a)
	_, err := o.start(ctx, 1)
	return err
}

// atomic fills request i with an atomic operation without a result.
func (o *op) atomic(i int, at driver.RemoteAddr, a Atomic) {
	o.wr[i] = driver.WorkRequest{Op: driver.OpAtomic, Remote: at,
		Atomic: a.Op, Width: a.Width, Operand: a.Operand, Compare: a.Compare}
}
