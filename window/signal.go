package window

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/wait"
)

// A Word is an element that [PutSignal] can set.
type Word interface{ ~int64 | ~uint64 }

// A SignalAt is a [Signal] in an element of any window: its value becomes Value or, with Add, grows
// by it. [WaitUntil] waits for it.
type SignalAt[U Word] struct {
	Window *Window[U]
	Index  int
	Value  U
	Add    bool
}

// PutSignal is [Window.PutNotify] with the signal in an element of s.Window at the same target:
// shmem_put_signal (OpenSHMEM 1.5, section 9.8.4). A rank that sees the signal, by WaitUntil or an
// atomic, sees src, and all that this rank put at the target before. Other atomics may update the
// element at the same time. It returns at local completion.
//
// s.Window has the team of w, and both or neither go through one [Queue]; otherwise PutSignal
// returns [ErrTeam]. After an error of another kind src may have been stored without the signal.
// Kind: one-sided.
func PutSignal[T any, U Word](ctx context.Context, w *Window[T], target, index int, src []T, s SignalAt[U]) error {
	request, err := startPutSignal(ctx, w, "PutSignal", target, index, src, s)
	if err == nil {
		err = request.Wait(ctx)
	}
	return err
}

// StartPutSignal is [PutSignal] that does not wait for local completion. The caller must not change
// src before Request.Wait returns. ctx bounds finding the target and room in the queue. Kind: one-sided.
func StartPutSignal[T any, U Word](ctx context.Context, w *Window[T], target, index int, src []T, s SignalAt[U]) (Request, error) {
	return startPutSignal(ctx, w, "StartPutSignal", target, index, src, s)
}

// startPutSignal starts the put, and sets a word of another window behind it. A word in mapped
// memory that follows a request waits for the request.
func startPutSignal[T any, U Word](ctx context.Context, w *Window[T], op string, target, index int, src []T, s SignalAt[U]) (Request, error) {
	ctx = wait.Context(ctx)
	far, mapped, err := s.reach(ctx, w.core, target)
	if err != nil {
		return Request{}, w.failAt(op, target, index, len(src), err)
	}
	if mutant.SignalBeforePut && target != Null {
		_ = s.store(ctx, target)
	}
	request, err := w.StartPut(ctx, target, index, src)
	if err != nil || target == Null {
		return request, err
	}
	switch r := w.remotes[target].Load(); {
	case !mapped:
		err = far.PostFlag(ctx, fabric.Flag{Offset: s.Window.layout.offset(s.Index), Value: uint64(s.Value), Add: s.Add})
	case r.Mem == nil:
		err = r.Peer.Flush(ctx) // a store would overtake the request
		fallthrough
	default:
		if err == nil {
			err = s.store(ctx, target)
		}
	}
	if err != nil {
		_ = request.Wait(ctx) // err comes first
		return Request{}, w.failAt(op, target, index, len(src), err)
	}
	return request, nil
}

// store sets the element in mapped memory.
func (s *SignalAt[U]) store(ctx context.Context, target int) error {
	if s.Add {
		return AtomicAdd(ctx, s.Window, target, s.Index, s.Value)
	}
	return AtomicStore(ctx, s.Window, target, s.Index, s.Value)
}

// reach returns the memory of the element at a target of c, and whether it is mapped.
func (s *SignalAt[U]) reach(ctx context.Context, c *core, target int) (*fabric.Remote, bool, error) {
	switch {
	case s.Window == nil:
		return nil, false, fmt.Errorf("%w: the signal has no window", ErrTeam)
	case s.Window.team != c.team:
		return nil, false, fmt.Errorf("%w: the signal's window belongs to team %s", ErrTeam, s.Window.team.Name)
	case s.Window.via != c.via:
		return nil, false, fmt.Errorf("%w: one queue carries data and signal, or none", ErrTeam)
	}
	r, v, err := s.Window.view(ctx, target, s.Index, 1)
	return r, v != nil, err
}
