package window

import (
	"context"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/element"
)

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

// StripeOf returns the offset of an element's lock in the window's words, if it has one.
func (w *Window[T]) StripeOf(index int) int { return w.layout.stripe(w.layout.offset(index)) }

// DieAmidUpdate does the first steps of an update of a mapped element, and dies: 0 the lock, 1 the undo
// record as well, 2 half of the element, 3 all of it, 4 undo cleared.
func DieAmidUpdate[T any](ctx context.Context, w *Window[T], target, index, steps int, v T, die func()) error {
	body, err := w.reach(ctx, target, index, 1)
	if err != nil {
		return err
	}
	e := &wide{core: w.core, words: w.remotes[target].Load(), body: body, target: target, place: w.layout.offset(index)}
	e.stripe = w.layout.stripe(e.place)
	if err := e.lock(ctx); err != nil {
		return err
	}
	n := w.layout.size
	mem, words := e.bytes(body, target, e.place, n), e.words.Mem[e.stripe:]
	if steps >= 1 {
		copy(words[earlierAt:], mem)
		atomics.Word64(words[undoAt:]).Store(uint64(e.place)<<sizeBits | uint64(n))
	}
	if steps >= 2 {
		copy(mem[:n/2], element.Bytes(element.Slice(&v, 1)))
	}
	if steps >= 3 {
		copy(mem, element.Bytes(element.Slice(&v, 1)))
	}
	if steps >= 4 {
		atomics.Word64(words[undoAt:]).Store(0)
	}
	die()
	return nil
}
