package window

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/blocks"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
)

// AccumulateBlocks is [Accumulate] of blocks: it combines the blocks from of src with the blocks to of
// the target, counted from index on: MPI_Accumulate with vector, indexed or subarray types. It returns
// at local completion. Where a block of the target is listed twice, both operands take effect. On mapped
// memory it is a loop. Over tcp, blocks of less than 4 KiB share requests of up to 16 KiB, and longer ones
// take those of an Accumulate each. An RDMA device takes the requests of an Accumulate for each block.
//
// It returns [ErrRange], and changes nothing, as PutBlocks does. After any other error, any of the
// elements may have been updated. Kind: one-sided.
func AccumulateBlocks[T any](ctx context.Context, w *Window[T], target, index int, to Blocks, src []T, from Blocks, op Op[T]) error {
	inner, n, err := accumulateBlocks(ctx, w, target, index, &to, src, nil, &from, op)
	if err == nil {
		err = inner.Wait(ctx)
	}
	return w.failAt("AccumulateBlocks", target, index, n, err)
}

// StartAccumulateBlocks is AccumulateBlocks that does not wait for its last request. The caller must not
// change src before Request.Wait returns. ctx bounds finding the target, room in the queue, and all
// requests but the last. Kind: one-sided.
func StartAccumulateBlocks[T any](ctx context.Context, w *Window[T], target, index int, to Blocks, src []T, from Blocks, op Op[T]) (Request, error) {
	inner, n, err := accumulateBlocks(ctx, w, target, index, &to, src, nil, &from, op)
	return w.request("StartAccumulateBlocks", target, index, n, inner, err)
}

// GetAccumulateBlocks is AccumulateBlocks that fills the blocks from of old with the earlier values of the
// elements. The slice old is as long as src, and src itself or apart from it. With [NoOp], src may be nil.
// Short blocks share requests of up to 64 KiB. The caller owns old again even if it returns an error.
// Kind: one-sided; complete when it returns.
func GetAccumulateBlocks[T any](ctx context.Context, w *Window[T], target, index int, to Blocks, src, old []T, from Blocks, op Op[T]) error {
	inner, n, err := getAccumulateBlocks(ctx, w, target, index, &to, src, old, &from, op)
	if err == nil {
		err = inner.Wait(ctx)
	}
	return w.failAt("GetAccumulateBlocks", target, index, n, err)
}

// StartGetAccumulateBlocks is GetAccumulateBlocks that does not wait for its last request. old holds the
// earlier values once Request.Wait has returned nil. Until then src and old belong to the call; see
// [StartAccumulateBlocks]. Kind: one-sided.
func StartGetAccumulateBlocks[T any](ctx context.Context, w *Window[T], target, index int, to Blocks, src, old []T, from Blocks, op Op[T]) (Request, error) {
	inner, n, err := getAccumulateBlocks(ctx, w, target, index, &to, src, old, &from, op)
	return w.request("StartGetAccumulateBlocks", target, index, n, inner, err)
}

// getAccumulateBlocks checks the lengths of src and old, and starts the accumulate. It returns the
// number of elements for errors.
func getAccumulateBlocks[T any](ctx context.Context, w *Window[T], target, index int, to *Blocks, src, old []T, from *Blocks, op Op[T]) (fabric.Request, int, error) {
	if op.atomic == driver.AtomicLoad || op.loads {
		src = old // only its length counts
	}
	if len(src) != len(old) {
		err := fmt.Errorf("%d operands, memory for %d earlier values: %w", len(src), len(old), ErrRange)
		return fabric.Request{}, len(old), err
	}
	return accumulateBlocks(ctx, w, target, index, to, src, old, from, op)
}

// accumulateBlocks carries out op, or starts it where the target is not mapped. It returns the request
// and the number of elements.
func accumulateBlocks[T any](ctx context.Context, w *Window[T], target, index int, to *Blocks, src, old []T, from *Blocks, op Op[T]) (inner fabric.Request, n int, err error) {
	s, err := w.span(target, index, to, len(src), from)
	switch {
	case err != nil:
		return fabric.Request{}, len(src), err
	case !op.made():
		return fabric.Request{}, s.size, ErrOp
	case op.atomic == 0:
		err = s.each(to, from, func(at, here, n int) error {
			return w.updateEach(ctx, target, at, part(src, here, n), part(old, here, n), op)
		})
		return fabric.Request{}, s.size, err
	}
	r, m, err := w.view(ctx, target, s.from, s.to-s.from)
	switch {
	case err == nil && w.unfit(target, op.atomic) != nil:
		err = w.unfit(target, op.atomic)
	case err != nil || s.size == 0 || op.atomic == driver.AtomicLoad && old == nil:
	case m != nil:
		err = s.each(to, from, func(at, here, n int) error {
			m.accumulate(at, part(src, here, n), part(old, here, n), op)
			return nil
		})
	default:
		b := w.lay(&s, to, from)
		inner, err = r.StartAccumulateBlocks(ctx, fabric.Accumulate{Op: op.atomic, Width: w.layout.size,
			Operands: element.Bytes(src), Old: element.Bytes(old)}, b)
		w.laid(b)
	}
	return inner, s.size, err
}

// each calls f for each block of a call, until f fails: with its place at the target, its place here, and
// its length.
func (s *span) each(to, from *Blocks, f func(at, here, n int) error) error {
	there, here := blocks.Start(&to.layout, s.index, 1), blocks.Start(&from.layout, 0, 1)
	for {
		far, near, ok := blocks.Pair(&there, &here)
		if !ok {
			return nil
		}
		for i := range far.Count {
			if err := f(far.At+i*far.Stride, near.At+i*near.Stride, near.Block); err != nil {
				return err
			}
		}
	}
}

// part returns n elements of s, nil if s is nil.
func part[T any](s []T, at, n int) []T {
	if s == nil {
		return nil
	}
	return s[at : at+n]
}
