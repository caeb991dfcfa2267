package pipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/runtime"
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
// Meanwhile an end without a waiting call lingers in its rank's registry.

// Close ends the pipe at this end.
func (w *Writer) Close(ctx context.Context) error {
	if w.Closed.Swap(true) {
		return nil
	}
	err := w.drain(ctx)
	w.Registry.Exit(w, w)
	return err
}

// drain tells the reader that nothing follows, and waits until it has read
// everything.
func (w *Writer) drain(ctx context.Context) error {
	said, err := w.finish(ctx)
	switch {
	case err != nil || !said:
		return err
	case w.deserted:
		return w.bid()
	}
	err = w.Await(ctx, w.watch[:], func() bool { return w.Flag(EndFlag) != 0 })
	if err != nil {
		return err
	}
	if err := w.TakeCredit(); err != nil {
		return err
	}
	if w.Flag(EndFlag) == drained {
		_ = w.bid() // or as this end lingers
		return nil
	}
	if err := w.Flush(ctx); err != nil { // blocks that left from the stage have arrived
		return err
	}
	w.settled = true
	_ = w.bid()
	if w.InFlight() > 0 {
		return ErrReaderGone
	}
	return nil
}

// CloseWrite ends the calls that write, and tells the reader that nothing follows. The
// calls have ended even if it fails: a reader that connects finds the end in the card.
func (w *Writer) CloseWrite(ctx context.Context) error {
	if w.Closed.Load() || w.over && w.Parting.Unseen {
		return nil
	}
	w.over, w.near = true, near{}
	_, err := w.finish(ctx)
	return err
}

// finish tells the reader that nothing follows, and waits for an answer of its rank at
// most. It is false where there is no reader to be told.
func (w *Writer) finish(ctx context.Context) (said bool, err error) {
	if !w.Joined.Load() {
		if w.Broken.Load() != nil {
			return false, nil
		}
		w.Abandon()
		deserted, err := w.JoinLast(ctx)
		switch {
		case err != nil && w.Reachable():
			return false, err
		case err != nil:
			return false, nil //nolint:nilerr // nothing was written for the reader to miss
		case !w.Joined.Load():
			w.Parting.Unseen = true
			return false, nil
		}
		w.deserted = deserted
	}
	switch {
	case w.deserted || w.finished:
		return true, nil
	case w.Broken.Load() != nil:
		if err := w.giveUp(); err != nil && w.Fate() == nil {
			return false, err
		}
		return false, nil
	}
	err = w.putClose()
	return err == nil, err
}

// putClose puts the last notification, for which the ring has a place of its own, unless
// the reader has gone.
func (w *Writer) putClose() error {
	flag := rmalloc.Flag{Kind: rmalloc.Close}.Encode(w.slot.Lap())
	return w.putFin(w.slot.Index(), flag)
}

// giveUp tells the reader that this end is corrupt. Which notification is free is
// not known any more: that flag is of the writer's alone.
func (w *Writer) giveUp() error { return w.putFin(w.WantedFlag(), gaveUp) }

// putFin puts the flag that nothing follows, unless the reader has gone, and tells a
// fan-in of it. The flag stays in line until the addition is posted. Otherwise the
// addition could leave behind the bye flag, when the word may be gone.
func (w *Writer) putFin(flag int, value uint64) error {
	w.finished = true
	if w.Flag(EndFlag) != 0 {
		return nil
	}
	put := false
	return w.fin.Post(w.Queue(), func(ctx context.Context) error {
		if !put {
			if err := w.PutFlag(ctx, 0, nil, flag, value); err != nil {
				return err
			}
			put = true
			w.Owe()
		}
		if err := w.AddSum(ctx); errors.Is(err, fabric.ErrNoRoom) {
			return err
		}
		return nil // a failure is the peer's
	})
}

func (w *Writer) Stop() {}

// Insist says what close could not: that nothing follows.
func (w *Writer) Insist(ctx context.Context) { w.Parting.Speak(ctx, w.owes, w.say) }

// owes reports whether there is something to say.
func (w *Writer) owes() bool {
	switch {
	case w.Fate() != nil:
		return false
	case !w.Joined.Load():
		return w.OwesUnmet(w.Flag(EndFlag) != 0)
	}
	return !w.finished && !w.deserted || w.unsettled()
}

// unsettled reports whether the reader has gone while something may be leaving from the
// stage.
func (w *Writer) unsettled() bool {
	return w.Flag(EndFlag) == deserted && !w.Direct && !w.settled && w.Up
}

// say does what can be done now. The registry tries again after a failure.
func (w *Writer) say(ctx context.Context) {
	if !w.Joined.Load() {
		w.deserted = w.Rejoin(ctx, w.Flag(EndFlag) != 0)
	}
	if w.Joined.Load() && !w.finished && !w.deserted {
		_, _ = w.finish(ctx)
	}
	if w.unsettled() {
		w.settled = w.Flush(ctx) == nil
	}
}

// Leave gives the memory back once the reader puts nothing more here, and says
// so to the reader. It waits for nothing: it comes again.
func (w *Writer) Leave() bool {
	return w.Parting.Leave(w.mayLeave, func() {
		_ = w.Release() // no caller is left to take the error
	})
}

func (w *Writer) mayLeave() bool {
	switch {
	case Gone(w.Fate()):
		return true
	case !w.Joined.Load():
		return w.MayLeaveUnmet(w.Flag(EndFlag) != 0)
	case w.Flag(EndFlag) == 0 || w.unsettled():
		return false
	}
	_ = w.bid() // it arrives, or the reader is gone
	return true
}

// bid puts the bye flag, once: with it the reader's memory may be gone.
func (w *Writer) bid() error {
	return w.bye.Post(w.Queue(), func(ctx context.Context) error { return w.PutLast(ctx, w.byeFlag(), 1) })
}

// Gone reports whether a rank puts nothing anywhere any more.
func Gone(fate error) bool {
	return errors.Is(fate, runtime.ErrRankDead) || errors.Is(fate, errCarrierClosed)
}
