package window

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Accumulate combines each element of src with the target's element at its place, from index on,
// and stores the results there. Each element is updated atomically with respect to all atomics
// of any rank on it; all of them together are not. Atomics and accumulates of one rank on one
// element take effect in the order of the calls.
//
// Accumulate returns at local completion: the caller may change src. Flush waits for the
// target's memory. On tcp a call is one request for each 64 KiB, which the target's CPU
// applies; a device without such requests takes one for each element. Structs and arrays of up to 64 bytes,
// and operators of [RegisterOp], take the calls that [RegisterOp] lists. Complex numbers need a place at a
// multiple of their size, which a [Part] or memory of [Create] may lack: [ErrAlignment]. After another
// error any of the elements may have been updated. src must not overlap the target's elements.
// Kind: one-sided.
func Accumulate[T any](ctx context.Context, w *Window[T], target, index int, src []T, op Op[T]) error {
	if m := w.mapped(target); m != nil && w.lent == nil && m.accumulates(index, len(src), op) {
		m.accumulate(index, src, nil, op)
		return nil
	}
	inner, err := accumulate(ctx, w, target, index, src, nil, op)
	if err == nil {
		err = inner.Wait(ctx)
	}
	return w.failAt("Accumulate", target, index, len(src), err)
}

// StartAccumulate is Accumulate that does not wait for its last 64 KiB. The caller must not change
// src before Request.Wait returns. The context bounds three things: finding the target, room in the
// queue, and all of src but the last 64 KiB. Kind: one-sided.
func StartAccumulate[T any](ctx context.Context, w *Window[T], target, index int, src []T, op Op[T]) (Request, error) {
	inner, err := accumulate(ctx, w, target, index, src, nil, op)
	return w.request("StartAccumulate", target, index, len(src), inner, err)
}

// GetAccumulate is Accumulate that fills old with the earlier values of the elements. The slice old
// is as long as src, and src itself or apart from it. With [NoOp], src may be nil. The caller owns
// old again even if GetAccumulate returns an error; old then holds any values. Kind: one-sided;
// complete when it returns.
func GetAccumulate[T any](ctx context.Context, w *Window[T], target, index int, src, old []T, op Op[T]) error {
	if m := w.mapped(target); m != nil && w.lent == nil && len(src) == len(old) && m.accumulates(index, len(src), op) {
		m.accumulate(index, src, old, op)
		return nil
	}
	inner, err := getAccumulate(ctx, w, target, index, src, old, op)
	if err == nil {
		err = inner.Wait(ctx)
	}
	return w.failAt("GetAccumulate", target, index, len(old), err)
}

// StartGetAccumulate is GetAccumulate that does not wait for its last 64 KiB. old holds the
// earlier values once Request.Wait has returned nil. Until then src and old belong to the call;
// see [StartAccumulate]. Kind: one-sided.
func StartGetAccumulate[T any](ctx context.Context, w *Window[T], target, index int, src, old []T, op Op[T]) (Request, error) {
	inner, err := getAccumulate(ctx, w, target, index, src, old, op)
	return w.request("StartGetAccumulate", target, index, len(old), inner, err)
}

// getAccumulate checks the lengths of src and old, and starts the accumulate. Two exported calls share
// it.
func getAccumulate[T any](ctx context.Context, w *Window[T], target, index int, src, old []T, op Op[T]) (fabric.Request, error) {
	if op.atomic == driver.AtomicLoad || op.loads {
		src = old // only its length counts
	}
	if len(src) != len(old) {
		return fabric.Request{}, fmt.Errorf("%d operands, memory for %d earlier values: %w", len(src), len(old), ErrRange)
	}
	return accumulate(ctx, w, target, index, src, old, op)
}

// accumulate carries out op, or starts it where the target is not mapped.
func accumulate[T any](ctx context.Context, w *Window[T], target, index int, src, old []T, op Op[T]) (fabric.Request, error) {
	switch {
	case !op.made():
		return fabric.Request{}, ErrOp
	case op.atomic == 0:
		return fabric.Request{}, w.updateEach(ctx, target, index, src, old, op)
	}
	r, m, err := w.view(ctx, target, index, len(src))
	switch {
	case err == nil && w.unfit(target, op.atomic) != nil:
		return fabric.Request{}, w.unfit(target, op.atomic)
	case err != nil || len(src) == 0 || op.atomic == driver.AtomicLoad && old == nil:
		return fabric.Request{}, err
	case m != nil:
		m.accumulate(index, src, old, op)
		return fabric.Request{}, nil
	}
	return r.StartAccumulate(ctx, w.layout.offset(index), fabric.Accumulate{Op: op.atomic, Width: w.layout.size,
		Operands: element.Bytes(src), Old: element.Bytes(old)})
}

// unfit returns an error if a target's elements take no atomics of this kind.
func (c *core) unfit(target int, op driver.AtomicOp) error {
	if !atomics.Fits(op, c.layout.size) {
		return fmt.Errorf("%w: this processor has no atomics of %d bytes", driver.ErrUnsupported, c.layout.size)
	}
	return c.misplaced(target)
}

// accumulates reports whether an accumulate of n elements needs no further check.
func (v *view[T]) accumulates(index, n int, op Op[T]) bool {
	return op.atomic != 0 && index >= 0 && index <= len(v.mem)-n && atomics.Fits(op.atomic, element.Size[T]()) && op.atomic != driver.AtomicLoad &&
		(!halfAligned[T]() || element.Address(v.mem)%uintptr(element.Size[T]()) == 0)
}

// accumulate carries out op on elements of mapped memory.
func (v *view[T]) accumulate(index int, src, old []T, op Op[T]) {
	v.count(len(src))
	mem := element.Bytes(v.mem[index : index+len(src)])
	atomics.ApplyEach(mem, op.atomic, element.Size[T](), element.Bytes(src), element.Bytes(old))
	if op.atomic != driver.AtomicLoad {
		tell(v.watch, v.remote)
	}
}
