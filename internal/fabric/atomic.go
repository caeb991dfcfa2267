package fabric

import (
	"context"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/verbs/driver"
)

// An Atomic names one atomic operation on a word of 1, 2, 4 or 8 bytes. A word of 16 bytes is
// possible where the target's CPU updates it at a request: then Compare has the second half of the
// operand.
type Atomic struct {
	Op      driver.AtomicOp
	Width   uint8
	Operand uint64
	Compare uint64 // of AtomicCmpSwap
}

// Fetch applies a at offset, a multiple of its width, and returns the old value,
// zero-extended.
func (r *Remote) Fetch(ctx context.Context, offset int, a Atomic) (old uint64, err error) {
	r.Peer.Stats.count(int(a.Width))
	if r.emulates() {
		return r.emulate(ctx, offset, a)
	}
	o, err := r.fetching(ctx, offset, a)
	if err != nil {
		return 0, err
	}
	return o.value(ctx)
}

// StartFetch starts a as Fetch applies it. old, a.Width bytes, holds the old value once
// Request.Wait has returned nil. It returns after the end of an operation that the device does
// not have and that this rank puts together.
func (r *Remote) StartFetch(ctx context.Context, offset int, a Atomic, old []byte) (Request, error) {
	r.Peer.Stats.count(int(a.Width))
	if r.loops(a) {
		v, err := r.emulate(ctx, offset, a)
		if err == nil {
			atomics.PutUint(old, v)
		}
		return Request{}, err
	}
	o, err := r.fetching(ctx, offset, a)
	if err != nil {
		return Request{}, err
	}
	o.old = old
	return o.start(ctx, 1)
}

// emulates reports whether this rank puts atomics together from those of the device.
func (r *Remote) emulates() bool {
	return !r.Peer.bind.info.Atomics.Extended && !r.Peer.f.byCPU(r.Peer.bind)
}

// loops reports whether a takes several atomics of the device, until none of another rank comes
// between.
func (r *Remote) loops(a Atomic) bool {
	if !r.emulates() {
		return false
	}
	_, native := a.native()
	return !native
}

// fetching returns an op whose request 0 has the old value come to its word.
func (r *Remote) fetching(ctx context.Context, offset int, a Atomic) (*op, error) {
	o, err := r.newOp(ctx)
	if err != nil {
		return nil, err
	}
	if r.Peer.f.byCPU(r.Peer.bind) {
		o.request(0, r.addr.Add(uint64(offset)), a)
		return o, nil
	}
	if r.emulates() {
		o.wr[0], _ = a.native()
		o.wr[0].Remote = r.addr.Add(uint64(offset))
		o.result(0, 8)
		return o, nil
	}
	o.atomic(0, r.addr.Add(uint64(offset)), a)
	o.result(0, a.Width)
	return o, nil
}

// fetch posts o's one atomic request, waits for its result of 8 bytes, and gives o back.
func (o *op) fetch(ctx context.Context) (uint64, error) {
	o.result(0, 8)
	return o.value(ctx)
}

// value posts o's one request, waits for it, and returns its result.
func (o *op) value(ctx context.Context) (uint64, error) {
	if _, err := o.start(ctx, 1); err != nil {
		return 0, err
	}
	return o.outcome(ctx)
}

// outcome waits for o's request, and returns its result.
func (o *op) outcome(ctx context.Context) (uint64, error) {
	if err := o.await(ctx); err != nil {
		return 0, err
	}
	old := o.loadResult()
	o.bind.ops.give(o)
	return old, nil
}

// loadResult returns the result that lies in o's word. A response of the target's CPU fills all
// of it, an atomic of the device the bytes of its width.
func (o *op) loadResult() uint64 {
	if o.byCPU {
		return atomics.Uint(o.word.Mem)
	}
	return atomics.Uint(o.seg[0].Mem)
}

// result has request i put its result of width bytes into o's word and yield a completion.
func (o *op) result(i int, width uint8) {
	o.seg[i] = driver.Segment{Mem: o.word.Mem[:width], LKey: o.word.LKey}
	o.wr[i].ID, o.wr[i].Local, o.wr[i].Flags = o.id, o.seg[i:i+1], driver.Signaled
}

// Update applies a as Fetch does, but without a result. It waits only for room in the
// queue. A later failure becomes the peer's error.
func (r *Remote) Update(ctx context.Context, offset int, a Atomic) error {
	if mutant.AccumulateLate {
		mutant.Later(func() { _ = r.update(context.WithoutCancel(ctx), offset, a) })
		return nil
	}
	return r.update(ctx, offset, a)
}

// update is Update without mutants.
func (r *Remote) update(ctx context.Context, offset int, a Atomic) error {
	p := r.Peer
	if r.loops(a) {
		_, err := r.Fetch(ctx, offset, a)
		return err
	}
	p.Stats.count(int(a.Width))
	var o *op
	var err error
	if p.bind.info.Atomics.Extended {
		if o, err = r.newOp(ctx); err == nil {
			o.atomic(0, r.addr.Add(uint64(offset)), a)
		}
	} else if o, err = r.fetching(ctx, offset, a); err == nil {
		o.alone = true // its result comes, and no caller waits for it
	}
	if err != nil {
		return err
	}
	_, err = o.start(ctx, 1)
	return err
}

// atomic fills request i with an atomic operation without a result.
func (o *op) atomic(i int, at driver.RemoteAddr, a Atomic) {
	o.wr[i] = driver.WorkRequest{Op: driver.OpAtomic, Remote: at,
		Atomic: a.Op, Width: a.Width, Operand: a.Operand, Compare: a.Compare}
}
