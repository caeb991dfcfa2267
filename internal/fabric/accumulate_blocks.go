package fabric

import (
	"context"
	"slices"

	"github.com/gopgas/gopgas/internal/blocks"
	"github.com/gopgas/gopgas/verbs/driver"
)

// StartAccumulateBlocks is StartAccumulate of blocks: the operands and the earlier values lie at the blocks
// here. Short blocks share requests, if the device takes runs. It waits for all requests but the last.
func (r *Remote) StartAccumulateBlocks(ctx context.Context, a Accumulate, b *Blocks) (last Request, err error) {
	var before flight
	most := r.accumulateMost(&a)
	for err == nil {
		size, to, from := b.batch(most)
		requests := to.Count
		switch {
		case size > 0 && b.single():
			size, to, from, requests = 0, b.there[0], b.here[0], 1
		case size > 0:
			requests = 1
		case requests == 0:
			if err = before.land(ctx, nil); err != nil {
				_ = last.Wait(ctx) // the first error counts
				last = Request{}
			}
			return last, err
		}
		for i := 0; i < requests && err == nil; i++ {
			started := last
			last = Request{}
			if err = before.enter(ctx, started); err != nil {
				break
			}
			if size > 0 {
				last, err = r.startAccumulateBatch(ctx, a, b, size)
			} else {
				last, err = r.StartAccumulate(ctx, to.At+i*to.Stride, a.at(from.At+i*from.Stride, from.Block))
			}
		}
	}
	return Request{}, before.land(ctx, err)
}

// accumulateMost returns the size of the largest batch of blocks, 0 if each block takes a request.
func (r *Remote) accumulateMost(a *Accumulate) int {
	b := r.Peer.bind
	if !b.info.Atomics.Extended {
		return 0
	}
	return b.blocksMost(a.Old == nil)
}

// at returns the n bytes of a from place at on.
func (a *Accumulate) at(at, n int) Accumulate {
	part := *a
	if part.Operands = a.Operands[at : at+n]; a.Old != nil {
		part.Old = a.Old[at : at+n]
	}
	return part
}

// startAccumulateBatch posts a batch of size bytes. The post copies operands without results.
func (r *Remote) startAccumulateBatch(ctx context.Context, a Accumulate, b *Blocks, size int) (Request, error) {
	o, err := r.newOp(ctx)
	if err != nil {
		return Request{}, err
	}
	o.wr[0] = driver.WorkRequest{Op: driver.OpAccumulate, Local: o.seg[:1], Remote: r.addr, Runs: b.there, Atomic: a.Op, Width: uint8(a.Width)}
	if a.Old == nil {
		b.packed = slices.Grow(b.packed[:0], size)[:size]
		o.seg[0], o.wr[0].Flags = driver.Segment{Mem: b.packed}, driver.Inline
		r.Peer.Stats.staged.Add(uint64(size))
	} else {
		o.fillBlocks(0, a.Old, b.here, size)
		o.wr[0].ID, o.wr[0].Flags = o.id, driver.Signaled|driver.Fetch
	}
	blocks.Pack(o.seg[0].Mem, a.Operands, 0, b.here)
	r.Peer.Stats.count(size)
	return o.start(ctx, 1)
}
