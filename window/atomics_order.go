package window

import (
	"context"

	"github.com/gopgas/gopgas/verbs/driver"
)

// FetchMin stores the lesser of v and the target's element in that element, and returns
// the element's earlier value. It compares in the order of T. If one of two floats is NaN,
// the element becomes NaN; -0 is less than 0. Kind: one-sided; complete when it returns.
func FetchMin[T Number](ctx context.Context, w *Window[T], target, index int, v T) (old T, err error) {
	return fetch(ctx, w, "FetchMin", target, index, minOf[T](), v, 0)
}

// FetchMax stores the greater of v and the target's element; see [FetchMin]. Kind: one-sided;
// complete when it returns.
func FetchMax[T Number](ctx context.Context, w *Window[T], target, index int, v T) (old T, err error) {
	return fetch(ctx, w, "FetchMax", target, index, maxOf[T](), v, 0)
}

// AtomicMin is [FetchMin] without a result. Remotely complete after a Flush. Kind:
// one-sided.
func AtomicMin[T Number](ctx context.Context, w *Window[T], target, index int, v T) error {
	return update(ctx, w, "AtomicMin", target, index, minOf[T](), v)
}

// AtomicMax is [FetchMax] without a result; see [AtomicMin]. Kind: one-sided; completes as that
// call does.
func AtomicMax[T Number](ctx context.Context, w *Window[T], target, index int, v T) error {
	return update(ctx, w, "AtomicMax", target, index, maxOf[T](), v)
}

func addOf[T Number]() driver.AtomicOp {
	return choose[T](driver.AtomicAddFloat, driver.AtomicAdd, driver.AtomicAdd)
}

func minOf[T Number]() driver.AtomicOp {
	return choose[T](driver.AtomicMinFloat, driver.AtomicMinInt, driver.AtomicMinUint)
}

func maxOf[T Number]() driver.AtomicOp {
	return choose[T](driver.AtomicMaxFloat, driver.AtomicMaxInt, driver.AtomicMaxUint)
}

// choose returns the operation for the numbers of T.
func choose[T Number](float, signed, unsigned driver.AtomicOp) driver.AtomicOp {
	var zero T
	switch {
	case isFloat[T]():
		return float
	case zero-1 < zero:
		return signed
	}
	return unsigned
}
