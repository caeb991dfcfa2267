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

// Fetch applies a at offset, a multiple of its width, and returns the old value,
// zero-extended.
func (r *Remote) Fetch(ctx context.Context, offset int, a Atomic) (old uint64, err error) {
	p := r.Peer
	p.Stats.count(int(a.Width))
	if !p.bind.info.Atomics.Extended && !p.f.asks(p.bind) {
		return r.emulate(ctx, offset, a)
	}
	o, err := r.newOp(ctx)
	if err != nil {
		return 0, err
	}
	if p.f.asks(p.bind) {
		o.request(0, r.addr.Add(uint64(offset)), a)
		return o.value(ctx, 8)
	}
	o.atomic(0, r.addr.Add(uint64(offset)), a)
	return o.fetch(ctx, a.Width)
}

// fetch posts o's one atomic request, waits for its result of width bytes, and
// gives o back.
func (o *op) fetch(ctx context.Context, width uint8) (uint64, error) {
	o.result(0, width)
	return o.value(ctx, width)
}

// value posts o's one request, waits for it, and returns the content of o's word.
func (o *op) value(ctx context.Context, width uint8) (uint64, error) {
	if _, err := o.start(ctx, 1); err != nil {
		return 0, err
	}
	if err := o.await(ctx); err != nil {
		return 0, err
	}
	old := atomics.Uint(o.word.Mem[:width])
	o.bind.ops.give(o)
	return old, nil
}

// result has request i put its result of width bytes into o's word and yield a completion.
func (o *op) result(i int, width uint8) {
	o.seg[i] = driver.Segment{Mem: o.word.Mem[:width], LKey: o.word.LKey}
	o.wr[i].ID, o.wr[i].Local, o.wr[i].Flags = o.id, o.seg[i:i+1], driver.Signaled
}

// Update applies a as Fetch does, but without a result. It waits only for room in the
// queue. A later failure becomes the peer's error.
func (r *Remote) Update(ctx context.Context, offset int, a Atomic) error {
	p := r.Peer
	asks := p.f.asks(p.bind)
	if !p.bind.info.Atomics.Extended && !asks {
		_, err := r.Fetch(ctx, offset, a)
		return err
	}
	p.Stats.count(int(a.Width))
	o, err := r.newOp(ctx)
	if err != nil {
		return err
	}
	if asks {
		o.request(0, r.addr.Add(uint64(offset)), a)
		o.alone = true
	} else {
		o.atomic(0, r.addr.Add(uint64(offset)), a)
	}
	_, err = o.start(ctx, 1)
	return err
}

// atomic fills request i with an atomic operation without a result.
func (o *op) atomic(i int, at driver.RemoteAddr, a Atomic) {
	o.wr[i] = driver.WorkRequest{Op: driver.OpAtomic, Remote: at,
		Atomic: a.Op, Width: a.Width, Operand: a.Operand, Compare: a.Compare}
}
