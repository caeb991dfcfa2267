package window

import "context"

// Realloc returns a window of n elements at every rank with the options of w, and ends w. Each
// rank's elements keep their values, as far as there is room, and so do its slots; further
// elements are zero. Attached memory ends with w, and the new window has room for as much. If [AllocateV] or [AllocateShared] made w, each rank gives its own n.
//
// Realloc completes the operations on w, as Fence does. No rank may make others before Realloc
// has returned at all ranks. A window of [Create] or [On] has no Realloc: [ErrLent]. If the memory does not suffice, or the ranks' n differ, all get the
// error of Allocate and w stays. A rank that holds a lock gets [ErrHeld] beside the new window.
// Kind: collective.
func (w *Window[T]) Realloc(ctx context.Context, n int) (*Window[T], error) {
	if w.parts.whole != any(w) {
		return nil, w.fail("Realloc", ErrPart)
	}
	if w.lent != nil {
		return nil, w.fail("Realloc", ErrLent)
	}
	if err := w.Fence(ctx); err != nil {
		return nil, err
	}
	same := func(o *options) error { *o = w.options; return nil }
	next, err := allocate[T](ctx, w.outer, n, []Option{same})
	if err != nil {
		return nil, err
	}
	copy(next.local, w.local)
	copy(next.block.Bytes[next.layout.slot0:next.layout.attach0], w.block.Bytes[w.layout.slot0:])
	return next, w.Free(ctx) // at the end, all ranks have copied
}
