package window

import (
	"context"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Integer lists the types with native atomics, at every width.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Number adds the floating point types.
type Number interface{ Integer | ~float32 | ~float64 }

// Scalar adds complex numbers.
type Scalar interface {
	Number | ~complex64 | ~complex128
}

// FetchAdd adds delta to the target's element and returns the element's earlier
// value. It is atomic with respect to every atomic operation of any rank on the
// element. Kind: one-sided; complete when it returns.
func FetchAdd[T Number](ctx context.Context, w *Window[T], target, index int, delta T) (old T, err error) {
	if isFloat[T]() {
		return fetch(ctx, w, "FetchAdd", target, index, driver.AtomicAddFloat, delta, 0)
	}
	if v := w.mapped(target); v != nil && uint(index) < uint(len(v.mem)) {
		v.count(1)
		old = addNative(&v.mem[index], delta)
		tell(v.watch, v.remote)
		return old, nil
	}
	return fetch(ctx, w, "FetchAdd", target, index, driver.AtomicAdd, delta, 0)
}

// FetchAnd clears the bits of the target's element that are not in bits, and returns its earlier
// value. Kind: one-sided; complete when it returns.
func FetchAnd[T Integer](ctx context.Context, w *Window[T], target, index int, bits T) (old T, err error) {
	return fetch(ctx, w, "FetchAnd", target, index, driver.AtomicAnd, bits, 0)
}

// FetchOr sets bits of the target's element, and returns its earlier value. Kind: one-sided;
// complete when it returns.
func FetchOr[T Integer](ctx context.Context, w *Window[T], target, index int, bits T) (old T, err error) {
	return fetch(ctx, w, "FetchOr", target, index, driver.AtomicOr, bits, 0)
}

// FetchXor flips bits of the target's element, and returns its earlier value. Kind: one-sided;
// complete when it returns.
func FetchXor[T Integer](ctx context.Context, w *Window[T], target, index int, bits T) (old T, err error) {
	return fetch(ctx, w, "FetchXor", target, index, driver.AtomicXor, bits, 0)
}

// Swap stores v in the target's element and returns the element's earlier value.
// Kind: one-sided; complete when it returns.
func Swap[T Number](ctx context.Context, w *Window[T], target, index int, v T) (old T, err error) {
	return fetch(ctx, w, "Swap", target, index, driver.AtomicSwap, v, 0)
}

// CompareSwap stores v in the target's element if that equals old, bit by bit,
// and returns the element's earlier value. The swap took place if seen equals
// old. A program that calls it in a loop keeps a core from the rank for which it waits: call
// [Window.Lock], or [WaitUntil]. Kind: one-sided; complete when it returns.
func CompareSwap[T Number](ctx context.Context, w *Window[T], target, index int, old, v T) (seen T, err error) {
	if m := w.mapped(target); m != nil && uint(index) < uint(len(m.mem)) {
		m.count(1)
		seen = compareSwapNative(&m.mem[index], old, v)
		tell(m.watch, m.remote)
		return seen, nil
	}
	return fetch(ctx, w, "CompareSwap", target, index, driver.AtomicCmpSwap, v, toBits(old))
}

// AtomicLoad returns the target's element, never torn between two updates. A program that calls it
// in a loop keeps a core from the rank for which it waits: call [WaitUntil]. Kind: one-sided;
// complete when it returns.
func AtomicLoad[T Number](ctx context.Context, w *Window[T], target, index int) (T, error) {
	return fetch(ctx, w, "AtomicLoad", target, index, driver.AtomicLoad, 0, 0)
}

// AtomicStore stores v in the target's element in one piece. Like Put, it is
// remotely complete after a Flush. Kind: one-sided.
func AtomicStore[T Number](ctx context.Context, w *Window[T], target, index int, v T) error {
	return update(ctx, w, "AtomicStore", target, index, driver.AtomicStore, v)
}

// AtomicAdd adds delta to the target's element. It waits for no result, so it is
// faster than FetchAdd where the target is not mapped. Remotely complete after a
// Flush. Kind: one-sided.
func AtomicAdd[T Number](ctx context.Context, w *Window[T], target, index int, delta T) error {
	return update(ctx, w, "AtomicAdd", target, index, addOf[T](), delta)
}

// AtomicXor flips bits of the target's element; see [AtomicAdd]. Kind: one-sided; completes as
// that call does.
func AtomicXor[T Integer](ctx context.Context, w *Window[T], target, index int, bits T) error {
	return update(ctx, w, "AtomicXor", target, index, driver.AtomicXor, bits)
}

// AtomicOr sets bits of the target's element; see [AtomicAdd]. Kind: one-sided; completes as
// that call does.
func AtomicOr[T Integer](ctx context.Context, w *Window[T], target, index int, bits T) error {
	return update(ctx, w, "AtomicOr", target, index, driver.AtomicOr, bits)
}

// AtomicAnd clears the bits of the target's element that are not in bits; see [AtomicAdd]. Kind:
// one-sided; completes as that call does.
func AtomicAnd[T Integer](ctx context.Context, w *Window[T], target, index int, bits T) error {
	return update(ctx, w, "AtomicAnd", target, index, driver.AtomicAnd, bits)
}

// fetch carries out an atomic with a result, mapped or not.
func fetch[T any](ctx context.Context, w *Window[T], op string, target, index int, a driver.AtomicOp, v T, compare uint64) (T, error) {
	if m := w.mapped(target); m != nil && uint(index) < uint(len(m.mem)) {
		m.count(1)
		old := atomics.Apply(element.Bytes(m.mem[index:index+1]), a, toBits(v), compare)
		if a != driver.AtomicLoad {
			tell(m.watch, m.remote)
		}
		return fromBits[T](old), nil
	}
	r, m, err := w.reachView(ctx, target, index, 1)
	var old uint64
	switch {
	case err != nil:
	case m != nil:
		return fetch(ctx, w, op, target, index, a, v, compare)
	default:
		old, err = r.Fetch(ctx, w.layout.offset(index), fabric.Atomic{Op: a, Width: uint8(w.layout.size), Operand: toBits(v), Compare: compare})
	}
	return fromBits[T](old), w.failAt(op, target, index, 1, err)
}

// update carries out an atomic without a result, mapped or not.
func update[T Scalar](ctx context.Context, w *Window[T], op string, target, index int, a driver.AtomicOp, v T) error {
	if m := w.mapped(target); m != nil && uint(index) < uint(len(m.mem)) {
		m.count(1)
		atomics.Apply(element.Bytes(m.mem[index:index+1]), a, toBits(v), 0)
		tell(m.watch, m.remote)
		return nil
	}
	r, m, err := w.reachView(ctx, target, index, 1)
	switch {
	case err != nil:
	case m != nil:
		return update(ctx, w, op, target, index, a, v)
	default:
		err = r.Update(ctx, w.layout.offset(index), fabric.Atomic{Op: a, Width: uint8(w.layout.size), Operand: toBits(v)})
	}
	return w.failAt(op, target, index, 1, err)
}
