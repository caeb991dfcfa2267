package window

import (
	"context"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
)

// FetchOp combines v with the target's element by op, stores the result there, and returns the
// element's earlier value. It is atomic with respect to every atomic operation of any rank on
// the element. Kind: one-sided; complete when it returns.
func FetchOp[T any](ctx context.Context, w *Window[T], target, index int, v T, op Op[T]) (old T, err error) {
	if op.atomic == 0 || halfAligned[T]() {
		return fetchWide(ctx, w, target, index, v, op)
	}
	return fetch(ctx, w, "FetchOp", target, index, op.atomic, v, 0)
}

// fetchWide is FetchOp by an accumulate of one element.
func fetchWide[T any](ctx context.Context, w *Window[T], target, index int, v T, op Op[T]) (old T, err error) {
	one := w.scratch.Get().(*[1]T)
	one[0] = v
	inner, err := accumulate(ctx, w, target, index, one[:], one[:], op)
	if err == nil {
		err = inner.Wait(ctx)
	}
	if err == nil {
		old = one[0]
	}
	w.scratch.Put(one)
	return old, w.failAt("FetchOp", target, index, 1, err)
}

// StartFetchOp is FetchOp that does not wait: *old holds the earlier value once Request.Wait has
// returned nil. Started atomics of one rank on one element take effect in the order of the calls.
// Where devices apply atomics and lack the operation, and for operators that [RegisterOp] makes and wide
// elements, StartFetchOp waits for it. Kind: one-sided.
func StartFetchOp[T any](ctx context.Context, w *Window[T], target, index int, v T, op Op[T], old *T) (Request, error) {
	if op.atomic != 0 && !halfAligned[T]() {
		return startFetch(ctx, w, "StartFetchOp", target, index, op.atomic, v, 0, old)
	}
	*old = v
	one := element.Slice(old, 1)
	inner, err := accumulate(ctx, w, target, index, one, one, op)
	return w.request("StartFetchOp", target, index, 1, inner, err)
}

// StartCompareSwap is CompareSwap that does not wait: *seen holds the earlier value once
// Request.Wait has returned nil; see [StartFetchOp]. Kind: one-sided.
func StartCompareSwap[T Number](ctx context.Context, w *Window[T], target, index int, old, v T, seen *T) (Request, error) {
	return startFetch(ctx, w, "StartCompareSwap", target, index, driver.AtomicCmpSwap, v, toBits(old), seen)
}

// startFetch carries out an atomic with a result, or starts it where the target is not mapped.
func startFetch[T any](ctx context.Context, w *Window[T], op string, target, index int, a driver.AtomicOp, v T, compare uint64, old *T) (Request, error) {
	r, m, err := w.view(ctx, target, index, 1)
	switch {
	case err != nil:
		return Request{}, w.failAt(op, target, index, 1, err)
	case m != nil:
		m.count(1)
		*old = fromBits[T](atomics.Apply(element.Bytes(m.mem[index:index+1]), a, toBits(v), compare))
		if a != driver.AtomicLoad {
			tell(m.watch, m.remote)
		}
		return Request{}, nil
	}
	inner, err := r.StartFetch(ctx, w.layout.offset(index),
		fabric.Atomic{Op: a, Width: uint8(w.layout.size), Operand: toBits(v), Compare: compare}, element.Bytes(element.Slice(old, 1)))
	return w.request(op, target, index, 1, inner, err)
}
