package window

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/blocks"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
)

// AccumulateBlocks is [Accumulate] of blocks: it combines the blocks from of src with the blocks to of
// the target, counted from index on: MPI_Accumulate with vector, indexed or subarray types. It returns
// at local completion. Where a block of the target is listed twice, both operands take effect. A
// device takes the requests of an Accumulate for each block; on mapped memory it is a loop.
//
// It returns [ErrRange], and changes nothing, as PutBlocks does. After any other error, any of the
// elements may have been updated. Kind: one-sided.
func AccumulateBlocks[T any](ctx context.Context, w *Window[T], target, index int, to Blocks, src []T, from Blocks, op Op[T]) error {
	n, err := accumulateBlocks(ctx, w, target, index, &to, src, nil, &from, op)
	return w.failAt("AccumulateBlocks", target, index, n, err)
}

// GetAccumulateBlocks is AccumulateBlocks that fills the blocks from of old with the earlier values of the
// elements. old is as long as src, and src itself or apart from it. With [NoOp], src may be nil. The
// caller owns old again even if it returns an error. Kind: one-sided; complete when it returns.
func GetAccumulateBlocks[T any](ctx context.Context, w *Window[T], target, index int, to Blocks, src, old []T, from Blocks, op Op[T]) error {
	if op.atomic == driver.AtomicLoad || op.loads {
		src = old // only its length counts
	}
	if len(src) != len(old) {
		err := fmt.Errorf("%d operands, memory for %d earlier values: %w", len(src), len(old), ErrRange)
		return w.failAt("GetAccumulateBlocks", target, index, len(old), err)
	}
	n, err := accumulateBlocks(ctx, w, target, index, &to, src, old, &from, op)
	return w.failAt("GetAccumulateBlocks", target, index, n, err)
}

// accumulateBlocks returns the number of elements.
func accumulateBlocks[T any](ctx context.Context, w *Window[T], target, index int, to *Blocks, src, old []T, from *Blocks, op Op[T]) (n int, err error) {
	s, err := w.span(target, index, to, len(src), from)
	if err != nil {
		return len(src), err
	}
	if !op.made() {
		return s.size, ErrOp
	}
	var under [4]fabric.Request // requests on their way
	posted := 0
	there, here := blocks.Start(&to.layout, index, 1), blocks.Start(&from.layout, 0, 1)
	for err == nil {
		far, near, ok := blocks.Pair(&there, &here)
		if !ok {
			break
		}
		for i := 0; i < far.Count && err == nil; i++ {
			place := &under[posted%len(under)]
			posted++
			if err = place.Wait(ctx); err == nil {
				*place, err = accumulate(ctx, w, target, far.At+i*far.Stride, part(src, near, i), part(old, near, i), op)
			}
		}
	}
	for i := range under {
		if e := under[(posted+i)%len(under)].Wait(ctx); err == nil {
			err = e
		}
	}
	return s.size, err
}

// part returns block i of a run of s, nil if s is nil.
func part[T any](s []T, r blocks.Run, i int) []T {
	if s == nil {
		return nil
	}
	at := r.At + i*r.Stride
	return s[at : at+r.Block]
}
