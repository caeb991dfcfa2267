package rpipe

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

// close ends the pipe at this end.
func (w *writerEnd) close(ctx context.Context) error {
	if w.closed.Swap(true) {
		return nil
	}
	err := w.drain(ctx)
	w.registry.exit(w, w)
	return err
}

// drain tells the reader that nothing follows, and waits until it has read
// everything.
func (w *writerEnd) drain(ctx context.Context) error {
	said, err := w.finish(ctx)
	switch {
	case err != nil || !said:
		return err
	case w.deserted:
		return w.bid()
	}
	err = w.await(ctx, w.watch[:], func() bool { return w.flag(endFlag) != 0 })
	if err != nil {
		return err
	}
	if err := w.takeCredit(); err != nil {
		return err
	}
	if w.flag(endFlag) == drained {
		_ = w.bid() // or as this end lingers
		return nil
	}
	if err := w.flush(ctx); err != nil { // blocks that left from the stage have arrived
		return err
	}
	w.settled = true
	_ = w.bid()
	if w.inFlight() > 0 {
		return errReaderGone
	}
	return nil
}

// closeWrite ends the calls that write, and tells the reader that nothing follows. The
// calls have ended even if it fails: a reader that connects finds the end in the card.
func (w *writerEnd) closeWrite(ctx context.Context) error {
	if w.closed.Load() || w.over && w.parting.unseen {
		return nil
	}
	w.over, w.near = true, near{}
	_, err := w.finish(ctx)
	return err
}

// finish tells the reader that nothing follows, and waits for an answer of its rank at
// most. It is false where there is no reader to be told.
func (w *writerEnd) finish(ctx context.Context) (said bool, err error) {
	if !w.joined.Load() {
		if w.broken.Load() != nil {
			return false, nil
		}
		w.abandon()
		deserted, err := w.joinLast(ctx)
		switch {
		case err != nil && w.reachable():
			return false, err
		case err != nil:
			return false, nil //nolint:nilerr // nothing was written for the reader to miss
		case !w.joined.Load():
			w.parting.unseen = true
			return false, nil
		}
		w.deserted = deserted
	}
	switch {
	case w.deserted || w.finished:
		return true, nil
	case w.broken.Load() != nil:
		if err := w.giveUp(); err != nil && w.fate() == nil {
			return false, err
		}
		return false, nil
	}
	err = w.putClose()
	return err == nil, err
}

// putClose puts the last notification, for which the ring has a place of its own, unless
// the reader has gone.
func (w *writerEnd) putClose() error {
	flag := rmalloc.Flag{Kind: rmalloc.Close}.Encode(w.slot.Lap())
	return w.putFin(w.slot.Index(), flag)
}

// giveUp tells the reader that this end is corrupt. Which notification is free is
// not known any more: that flag is of the writer's alone.
func (w *writerEnd) giveUp() error { return w.putFin(w.wantedFlag(), gaveUp) }

// putFin puts the flag that nothing follows, unless the reader has gone, and tells a
// fan-in of it. The flag stays in line until the addition is posted. Otherwise the
// addition could leave behind the bye flag, when the word may be gone.
func (w *writerEnd) putFin(flag int, value uint64) error {
	w.finished = true
	if w.flag(endFlag) != 0 {
		return nil
	}
	put := false
	return w.fin.post(w.queue(), func(ctx context.Context) error {
		if !put {
			if err := w.putFlag(ctx, 0, nil, flag, value); err != nil {
				return err
			}
			put = true
			w.owe()
		}
		if err := w.addSum(ctx); errors.Is(err, fabric.ErrNoRoom) {
			return err
		}
		return nil // a failure is the peer's
	})
}

func (w *writerEnd) stop() {}

// insist says what close could not: that nothing follows.
func (w *writerEnd) insist(ctx context.Context) { w.parting.speak(ctx, w.owes, w.say) }

// owes reports whether there is something to say.
func (w *writerEnd) owes() bool {
	switch {
	case w.fate() != nil:
		return false
	case !w.joined.Load():
		return w.owesUnmet(w.flag(endFlag) != 0)
	}
	return !w.finished && !w.deserted || w.unsettled()
}

// unsettled reports whether the reader has gone while something may be leaving from the
// stage.
func (w *writerEnd) unsettled() bool {
	return w.flag(endFlag) == deserted && !w.direct && !w.settled && w.up
}

// say does what can be done now. The registry tries again after a failure.
func (w *writerEnd) say(ctx context.Context) {
	if !w.joined.Load() {
		w.deserted = w.rejoin(ctx, w.flag(endFlag) != 0)
	}
	if w.joined.Load() && !w.finished && !w.deserted {
		_, _ = w.finish(ctx)
	}
	if w.unsettled() {
		w.settled = w.flush(ctx) == nil
	}
}

// leave gives the memory back once the reader puts nothing more here, and says
// so to the reader. It waits for nothing: it comes again.
func (w *writerEnd) leave() bool {
	return w.parting.leave(w.mayLeave, func() {
		_ = w.release() // no caller is left to take the error
	})
}

func (w *writerEnd) mayLeave() bool {
	switch {
	case gone(w.fate()):
		return true
	case !w.joined.Load():
		return w.mayLeaveUnmet(w.flag(endFlag) != 0)
	case w.flag(endFlag) == 0 || w.unsettled():
		return false
	}
	_ = w.bid() // it arrives, or the reader is gone
	return true
}

// bid puts the bye flag, once: with it the reader's memory may be gone.
func (w *writerEnd) bid() error {
	return w.bye.post(w.queue(), func(ctx context.Context) error { return w.putLast(ctx, w.byeFlag(), 1) })
}

// gone reports whether a rank puts nothing anywhere any more.
func gone(fate error) bool {
	return errors.Is(fate, runtime.ErrRankDead) || errors.Is(fate, errCarrierClosed)
}
