package fabric

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/verbs/driver"
)

// An Accumulate names one atomic operation on each of several adjacent elements.
type Accumulate struct {
	Op       driver.AtomicOp
	Width    int    // bytes of an element
	Operands []byte // one for each element; of AtomicLoad, only the length counts
	Old      []byte // takes the earlier values, if not nil; as long as Operands, or the same
}

// StartAccumulate applies a from offset on, a multiple of the width. It posts a request for
// each MaxAccumulate bytes, in order, and waits for room in the queue and for all requests but
// the last. The buffers belong to the operation until Request.Wait.
//
// A device without extended atomics takes a request for each element. StartAccumulate then
// waits for all of them.
func (r *Remote) StartAccumulate(ctx context.Context, offset int, a Accumulate) (Request, error) {
	if !r.Peer.bind.info.Atomics.Extended {
		return Request{}, r.accumulateEach(ctx, offset, a)
	}
	var before flight
	for len(a.Operands) > driver.MaxAccumulate {
		piece := a.cut(driver.MaxAccumulate)
		place, err := before.next(ctx)
		if err == nil {
			*place, err = r.startPiece(ctx, offset, piece)
		}
		if err != nil {
			return Request{}, before.land(ctx, err)
		}
		offset += driver.MaxAccumulate
	}
	last, err := r.startPiece(ctx, offset, a)
	if err = before.land(ctx, err); err != nil {
		_ = last.Wait(ctx) // the first error counts
		return Request{}, err
	}
	return last, nil
}

// A flight holds the requests of one call that are under way.
type flight struct {
	under  [4]Request
	posted int
}

// next returns the place of the next request, once the request at that place has ended.
func (f *flight) next(ctx context.Context) (place *Request, err error) {
	place = &f.under[f.posted%len(f.under)]
	f.posted++
	earlier := *place
	*place = Request{}
	return place, earlier.Wait(ctx)
}

// land waits for all requests. It returns err, or else the first error of a request.
func (f *flight) land(ctx context.Context, err error) error {
	for range f.under {
		if _, e := f.next(ctx); err == nil {
			err = e
		}
	}
	return err
}

// cut takes the first n bytes off a, or all.
func (a *Accumulate) cut(n int) Accumulate {
	front := *a
	if n = min(n, len(a.Operands)); a.Old != nil {
		front.Old, a.Old = a.Old[:n], a.Old[n:]
	}
	front.Operands, a.Operands = a.Operands[:n], a.Operands[n:]
	return front
}

// startPiece posts a as one request. The post copies few operands without results; then no
// caller needs to wait.
func (r *Remote) startPiece(ctx context.Context, offset int, a Accumulate) (Request, error) {
	p := r.Peer
	if mutant.AccumulateLate && a.Old == nil {
		late := a
		late.Operands, late.Old = bytes.Clone(a.Operands), make([]byte, len(a.Operands))
		mutant.Later(func() { _, _ = r.startPiece(context.WithoutCancel(ctx), offset, late) })
		return Request{}, nil
	}
	p.Stats.count(len(a.Operands))
	o, err := r.newOp(ctx)
	if err != nil {
		return Request{}, err
	}
	o.wr[0] = driver.WorkRequest{Op: driver.OpAccumulate, Local: o.seg[:1], Remote: r.addr.Add(uint64(offset)),
		Atomic: a.Op, Width: uint8(a.Width)}
	if a.Old == nil && p.PathOf(len(a.Operands)) == FMA && len(a.Operands) <= p.bind.inlineMax() {
		o.seg[0], o.wr[0].Flags = driver.Segment{Mem: a.Operands}, driver.Inline
		return o.start(ctx, 1)
	}
	mem := a.Operands
	if o.wr[0].ID, o.wr[0].Flags = o.id, driver.Signaled; a.Old != nil {
		mem, o.wr[0].Flags = a.Old, driver.Signaled|driver.Fetch
		copy(a.Old, a.Operands)
	}
	if err := o.lend(0, mem, a.Old != nil, false); err != nil {
		o.unfit = err
	}
	copy(o.stage.Mem, mem) // nothing, unless the operation has a stage
	return o.start(ctx, 1)
}

// accumulateEach applies a by a request for each element.
func (r *Remote) accumulateEach(ctx context.Context, offset int, a Accumulate) (err error) {
	if a.Width > 8 && !r.Peer.f.byCPU(r.Peer.bind) {
		return fmt.Errorf("%w: elements of %d bytes; have CPUs apply atomics (GRUN_ATOMICS=cpu)", driver.ErrUnsupported, a.Width)
	}
	var all flight
	one := Atomic{Op: a.Op, Width: uint8(a.Width)}
	for i := 0; i < len(a.Operands) && err == nil; i += a.Width {
		if a.Op != driver.AtomicLoad {
			operand := a.Operands[i : i+a.Width]
			one.Operand = atomics.Uint(operand[:min(8, a.Width)])
			if a.Width > 8 {
				one.Compare = atomics.Uint(operand[8:])
			}
		}
		if a.Old == nil {
			err = r.Update(ctx, offset+i, one)
			continue
		}
		var place *Request
		if place, err = all.next(ctx); err == nil {
			*place, err = r.StartFetch(ctx, offset+i, one, a.Old[i:i+a.Width])
		}
	}
	return all.land(ctx, err)
}
