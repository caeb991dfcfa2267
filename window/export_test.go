package window

import "context"

// AwaitRung waits for elements of this rank as WaitUntil does, without looks of its own: only
// a ring ends its sleep.
func (w *Window[T]) AwaitRung(ctx context.Context, ready func() bool) error {
	watch := w.word(w.layout.watch)
	watch.Add(1)
	defer watch.Add(^uint64(0))
	return w.team.Await(ctx, ready)
}

// Recast returns p as a pointer to another type, as memory that holds the wrong type would.
func Recast[U, T any](p Pointer[T]) Pointer[U] { return Pointer[U](p) }
