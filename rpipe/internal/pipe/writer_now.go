package pipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

// readyNow is ready without waiting for the reader to open its end. It waits for an
// answer of the reader's rank, for lastMoment at most.
func (w *Writer) readyNow() error {
	if !w.Up && !w.Joined.Load() && w.writable() == nil {
		brief, cancel := aMoment()
		defer cancel()
		err := w.Join(brief, false)
		switch {
		case err != nil:
			return err
		case !w.Joined.Load():
			return ErrWouldBlock
		}
	}
	return w.Ready(w.noWait)
}

// aMoment returns a context of a call that waits for an answer of the other rank, and
// for nothing else.
func aMoment() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), lastMoment, ErrWouldBlock)
}

// AllocNow is alloc without the wait.
func (w *Writer) AllocNow(n int) (rmalloc.Addr, error) {
	if err := w.readyNow(); err != nil {
		return 0, err
	}
	ctx := w.noWait
	if w.Spec.sync == Immediate && !w.Direct {
		brief, cancel := aMoment()
		defer cancel()
		ctx = brief
	}
	a, err := w.takeAndAlloc(ctx, n)
	if !errors.Is(err, rmalloc.ErrFull) {
		return a, err
	}
	w.Progress()
	if a, err = w.takeAndAlloc(ctx, n); !errors.Is(err, rmalloc.ErrFull) {
		return a, err
	}
	return 0, w.wish(WantsMemory)
}

// takeAndAlloc takes in freed memory and looks for a hole.
func (w *Writer) takeAndAlloc(ctx context.Context, n int) (rmalloc.Addr, error) {
	if err := w.Tags.Take(ctx); err != nil {
		return 0, err
	}
	return w.TryAlloc(n)
}

// WriteNow is write without the wait.
func (w *Writer) WriteNow(a rmalloc.Addr) error {
	if w.writeNear(a) {
		return nil
	}
	if err := w.WidthNow(); err != nil {
		return err
	}
	return w.WriteFrom(w.noWait, a, a.Offset())
}

// WriteFirstNow is WriteFirst without the wait.
func (w *Writer) WriteFirstNow(a rmalloc.Addr, bytes int) error {
	if err := w.WidthNow(); err != nil {
		return err
	}
	return w.WriteFirst(w.noWait, a, bytes)
}

// WidthNow returns nil once a block can be written without a wait for the reader.
func (w *Writer) WidthNow() error {
	if err := w.readyNow(); err != nil {
		return err
	}
	if ok, err := w.hasWidth(); ok || err != nil {
		return err
	}
	w.Progress()
	if ok, err := w.hasWidth(); ok || err != nil {
		return err
	}
	return w.wish(WantsWidth)
}

// hasWidth reports whether one more block may be on its way.
func (w *Writer) hasWidth() (bool, error) {
	if w.InFlight() < w.Spec.Width {
		return true, nil
	}
	err := w.TakeCredit()
	return w.InFlight() < w.Spec.Width, err
}

// wish tells the reader that this end finds no room, unless an earlier wish has not
// been answered yet. It returns ErrWouldBlock, or why the reader cannot be told. A wish
// that finds no room in the queue is told by the next call.
func (w *Writer) wish(kind uint64) error {
	if w.Flag(CreditFlag) != w.asked {
		w.wishes = 0 // the reader has answered
	}
	if w.wishes&kind == 0 {
		if err := w.Want(w.noWait, w.wishes|kind); err != nil {
			return err
		}
	}
	return ErrWouldBlock
}

// NoWait returns a context under which a put that finds no room in its queue fails with
// ErrWouldBlock at once.
func NoWait() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrWouldBlock)
	return ctx
}

// Reserve takes a block that can be written without a wait, or is ErrFull. With ask
// it tells the reader that it waits, and sees all that was freed before the reader
// knew.
func (w *Writer) Reserve(ctx context.Context, n int, ask bool) (rmalloc.Addr, error) {
	if err := w.Ready(ctx); err != nil {
		return 0, err
	}
	if ask {
		if err := errors.Join(w.Want(ctx, WantsMemory|WantsWidth), w.Tags.Ask(ctx)); err != nil {
			return 0, err
		}
	}
	if err := w.Tags.Take(ctx); err != nil {
		return 0, err
	}
	if w.InFlight() >= w.Spec.Width {
		return 0, rmalloc.ErrFull
	}
	return w.TryAlloc(n)
}
