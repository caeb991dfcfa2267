package pipe

import (
	"cmp"
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

// NoWait returns the context of a Try call, which has ended. Under it a call of a Writer
// fails with ErrWouldBlock where it would wait for the reader, or for room in a queue.
// CloseWrite under it does not look for a reader that is not connected.
func NoWait() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrWouldBlock)
	return ctx
}

// tries reports whether ctx is that of a Try call.
func tries(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrWouldBlock) }

// aMoment returns a context of a call that waits for a response of the other rank, and
// for nothing else.
func aMoment() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), lastMoment, ErrWouldBlock)
}

// hasWidth reports whether one more block may be on its way.
func (w *Writer) hasWidth() (bool, error) {
	if w.InFlight() < w.Spec.Width {
		return true, nil
	}
	err := w.TakeCredit()
	return w.InFlight() < w.Spec.Width, err
}

// wish tells the reader that this end finds no room, unless the reader has not responded to an
// earlier wish yet. It returns ErrWouldBlock, or why the reader cannot be told. A wish
// that finds no room in the queue is told by the next call.
func (w *Writer) wish(kind uint64) error {
	if w.Flag(CreditFlag) != w.toldAt {
		w.wishes = 0 // the reader has responded
	}
	if w.wishes&kind == 0 {
		if err := w.Want(w.Now, w.wishes|kind); err != nil {
			return err
		}
	}
	return w.noneYet()
}

// noneYet returns ErrWouldBlock, or why the call would wait in vain.
func (w *Writer) noneYet() error {
	if gone := w.Presence(); gone != nil {
		return gone
	}
	return ErrWouldBlock
}

// Reserve takes a block that can be written without a wait, or is ErrFull. With tell
// it tells the reader that it waits, and sees all that was freed before the reader
// knew.
func (w *Writer) Reserve(ctx context.Context, n int, tell bool) (rmalloc.Addr, error) {
	if err := w.Ready(ctx); err != nil {
		return 0, err
	}
	if tell {
		if err := errors.Join(w.Want(ctx, WantsMemory|WantsWidth), w.Tags.TakeBehind(ctx)); err != nil {
			return 0, err
		}
	}
	if ok, err := w.hasWidth(); !ok || err != nil {
		return 0, cmp.Or(err, rmalloc.ErrFull)
	}
	return w.takeAndAlloc(ctx, n)
}
