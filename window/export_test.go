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
