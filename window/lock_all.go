package window

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/wait"
)

// HeldAll is a shared lock of every rank of a window's team.
type HeldAll struct {
	core *core
	held []Held // by target
}

// LockAll takes the shared locks of all ranks of the team: MPI_Win_lock_all. It excludes ranks that ask for
// an exclusive lock, and those exclude it. Accesses need no lock: only programs call it whose other
// ranks call Lock for exclusive access. It takes one lock after the other, in the order of the
// ranks. A rank that has an exclusive lock must not wait for LockAll. If the call fails, this rank
// holds nothing. Otherwise as [Window.Lock]. Kind: one-sided.
func (w *Window[T]) LockAll(ctx context.Context) (HeldAll, error) {
	all := HeldAll{core: w.core, held: make([]Held, 0, len(w.remotes))}
	for target := range w.remotes {
		h, err := w.lockBy(ctx, "LockAll", target, Shared, true)
		if err != nil {
			return HeldAll{}, errors.Join(err, all.release(context.WithoutCancel(wait.Context(ctx))))
		}
		all.held = append(all.held, h)
	}
	return all, nil
}

// Unlock completes this rank's operations on all targets, and releases the locks, also where that
// fails or ctx ends: MPI_Win_unlock_all. A second call returns [ErrNotHeld]. Kind: one-sided.
func (a HeldAll) Unlock(ctx context.Context) error {
	if a.core == nil {
		return Held{}.Unlock(ctx)
	}
	return a.release(ctx)
}

// release releases all locks. It returns the first error.
func (a HeldAll) release(ctx context.Context) error {
	var first error
	for _, h := range a.held {
		if err := h.Unlock(ctx); first == nil {
			first = err
		}
	}
	return first
}
