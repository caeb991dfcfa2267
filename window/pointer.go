package window

import (
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// ErrPointer: the pointer is nil, or its window was freed, is another one, or has no such element.
var ErrPointer = errors.New("pointer leads to no element here")

// A Pointer is the address of an element at any rank. It is a value of 24 bytes that means the
// same at all ranks of the window's team: windows hold it, pipes carry it, == compares it. Its
// zero value is nil. [Window.Attach] returns one, too, for [Window.Open]. [Find] returns the window, the target and the index that it stands for. The
// end of a window makes its pointers stale: no later window of the job has the same.
type Pointer[T any] struct {
	window uint64 // a hash of the window's name in the job, see team.ID
	index  int64
	target int64 // the rank; attached memory has its entry above, see placed
}

// Pointer returns the address of an element. It reaches no rank. Kind: local.
func (w *Window[T]) Pointer(target, index int) (Pointer[T], error) {
	p := Pointer[T]{w.id, int64(index), int64(target) | w.entryBits}
	if _, _, err := w.Locate(p); err != nil {
		return Pointer[T]{}, w.failAt("Pointer", target, index, 1, fmt.Errorf("%w: %w", ErrRange, errors.Unwrap(err)))
	}
	return p, nil
}

// IsNil reports whether p is the zero value. Kind: local.
func (p Pointer[T]) IsNil() bool { return p == Pointer[T]{} }

// Add returns the pointer to the n-th element behind p's at the same rank, ahead of it if n is
// negative. The use of a pointer beyond the rank's elements returns [ErrPointer]. Kind: local.
func (p Pointer[T]) Add(n int) Pointer[T] {
	if !p.IsNil() {
		p.index += int64(n)
	}
	return p
}

// String returns the window's key, the rank and the index.
func (p Pointer[T]) String() string {
	if p.IsNil() {
		return "nil pointer"
	}
	return fmt.Sprintf("element %d at rank %d of window #%016x", p.index, int32(p.target), p.window)
}

// Locate returns the target and the index of a pointer into this window, else [ErrPointer].
// Kind: local.
func (w *Window[T]) Locate(p Pointer[T]) (target, index int, err error) {
	switch {
	case w.freed.Load():
		err = ErrFreed
	case p.window != w.id && !mutant.LocateAnyWindow:
		err = fmt.Errorf("%v: %w", p, ErrPointer)
	default:
		rank := p.target - w.entryBits
		if rank >= 0 && rank < int64(len(w.remotes)) && p.index >= 0 && p.index < int64(w.length(int(rank))) {
			return int(rank), int(p.index), nil
		}
		err = fmt.Errorf("%v: %w", p, ErrPointer)
	}
	return 0, 0, w.fail("Locate", err)
}

// Find returns the window of team t into which p leads, and the target and the index there:
//
//	w, target, index, err := window.Find(world, node.Next)
//	node, err = w.GetValue(ctx, target, index)
//
// It returns [ErrPointer] if p is nil or stale, or leads into a window of another team. It returns
// [ErrType] if that window has other elements. A program that knows the window calls
// [Window.Locate], which looks nothing up. Kind: local.
func Find[T any](t *runtime.Team, p Pointer[T]) (w *Window[T], target, index int, err error) {
	rank := -1
	bad := func(err error) (*Window[T], int, int, error) {
		return nil, 0, 0, &OpError{Op: "Find", Window: "(unknown)", Rank: rank, Target: -1, Index: -1, Err: err}
	}
	if t == nil || team.Of(t) == nil {
		return bad(ErrTeam)
	}
	rank = t.Rank()
	owner := team.Of(t).Owner(p.window)
	w, ok := owner.(*Window[T])
	switch {
	case owner == nil && p.target>>32 != 0:
		return bad(fmt.Errorf("%v: %w: it leads to attached memory, which Window.Open takes", p, ErrPointer))
	case owner == nil:
		return bad(fmt.Errorf("%v: %w of team %s: it was freed, or is of another team", p, ErrPointer, t.Name()))
	case !ok:
		return bad(fmt.Errorf("%v: %w: the window is a %T", p, ErrType, owner))
	}
	target, index, err = w.Locate(p)
	return w, target, index, err
}
