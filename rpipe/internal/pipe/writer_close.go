package pipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// Each closing end gives its memory back only when its peer has said that it puts
// nothing more there:
//
//	writer                                 reader
//	close notification     ------------->  reads up to it: EOF
//	puts nothing after it                  announces the last
//	gives memory back      <-------------  end flag (drained, or deserted when closed early)
//	bye flag               ------------->  gives memory back
//
// Meanwhile an end without a waiting call is in its rank's registry. standing.go has the
// protocol of all ends.

// Close ends the pipe at this end: it tells the reader that nothing follows, and waits until the
// reader has read everything.
func (w *Writer) Close(ctx context.Context) error {
	if w.Closed.Swap(true) {
		return nil
	}
	err := w.Depart(ctx)
	if err == nil && w.Joined.Load() && !w.Deserted && !w.gaveUp {
		err = w.awaitEnd(ctx)
	}
	w.Registry.Exit(w.End)
	return err
}

// awaitEnd waits until the reader has read everything, or has gone.
func (w *Writer) awaitEnd(ctx context.Context) error {
	if err := w.Await(ctx, w.Heard); err != nil {
		return err
	}
	if err := w.TakeCredit(); err != nil {
		return err
	}
	if w.Flag(EndFlag) != drained && w.InFlight() > 0 {
		return ErrReaderGone
	}
	return nil
}

// CloseWrite ends the calls that write, and tells the reader that nothing follows. The
// calls have ended even if it fails: a reader that connects finds the end in the card.
func (w *Writer) CloseWrite(ctx context.Context) error {
	if w.Closed.Load() || w.over && w.closing.known.absent {
		return nil
	}
	w.over, w.near = true, near{}
	return w.Depart(ctx)
}

// Deliver puts the last notification, for which the ring has a place of its own. A reader that was
// closed before needs the last flag alone. At an end that is corrupt it is not known any more which
// notification is free: it tells the reader by a flag that is the writer's alone.
func (w *Writer) Deliver(context.Context) error {
	switch {
	case w.Deserted:
		return w.bid()
	case w.finished:
		return nil
	case w.Broken.Load() == nil:
		return w.putFin(w.place(), rmalloc.Flag{Kind: rmalloc.Close}.Encode(w.slot.Lap()))
	}
	w.gaveUp = true
	if err := w.putFin(w.WantedFlag(), gaveUp); err != nil && w.Fate() == nil {
		return err
	}
	return nil
}

// putFin puts the flag that nothing follows, unless the reader has gone, and tells a
// fan-in of it. The flag stays in line until the number is posted. Otherwise the
// number could leave behind the bye flag, when the word may be gone.
func (w *Writer) putFin(flag int, value uint64) error {
	w.finished = true
	if w.Flag(EndFlag) != 0 {
		return nil
	}
	return w.fin.post(w.Queue(), func(ctx context.Context) error {
		if err := w.PutFlag(ctx, 0, nil, flag, value); err != nil || w.Set == nil {
			return err
		}
		w.next()
		if err := w.Repeat(ctx); errors.Is(err, fabric.ErrNoRoom) {
			return err
		}
		return nil // a failure is the peer's
	})
}

// Heard reports whether the reader puts nothing more here.
func (w *Writer) Heard() bool { return w.Flag(EndFlag) != 0 }

// Finish posts the bye flag, once nothing leaves from the stage any more.
func (w *Writer) Finish(ctx context.Context, wait bool) bool {
	if w.unsettled() && wait {
		w.settled = w.Flush(ctx) == nil
	}
	if w.unsettled() {
		return false
	}
	_ = w.bid() // it arrives, or the reader is gone
	return true
}

// unsettled reports whether the reader has gone while something may be leaving from the
// stage.
func (w *Writer) unsettled() bool {
	return w.Flag(EndFlag) == deserted && !w.Direct && !w.settled && w.Up
}

// Stop does nothing: a writer puts nothing by itself.
func (w *Writer) Stop() {}

// bid puts the bye flag, once: with it the reader's memory may be gone.
func (w *Writer) bid() error {
	return w.bye.post(w.Queue(), func(ctx context.Context) error { return w.PutFlag(ctx, 0, nil, w.byeFlag(), 1) })
}

// A lastFlag is a flag that an end puts once, as it closes. No call waits for room for it.
// It leaves behind all that the end has put, although the end may be gone by then.
type lastFlag struct{ fabric.Composer }

// post has put set the flag, and returns what became of the peer. Further calls do nothing.
func (l *lastFlag) post(to *fabric.Peer, put func(ctx context.Context) error) error {
	if l.Compose != nil {
		return nil
	}
	l.Compose = put
	return postOrLater(to, &l.Composer)
}

// postOrLater has c post now, or as soon as there is room. It returns the peer's error.
func postOrLater(to *fabric.Peer, c *fabric.Composer) error {
	if err := to.Post(to.NoWait(), c); !errors.Is(err, fabric.ErrNoRoom) {
		return err
	}
	return nil
}
