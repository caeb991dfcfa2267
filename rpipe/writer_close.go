package rpipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/runtime"
)

// Two ends that close give their memory back only when the other one has said
// that it puts nothing more there:
//
//	writer                                 reader
//	close notification     ------------->  reads up to it: EOF
//	puts nothing after it                  announces the last
//	gives memory back      <-------------  end flag (drained, or deserted when closed early)
//	bye flag               ------------->  gives memory back
//
// An end that waits for nobody meanwhile lingers in its rank's registry.

// close ends the pipe at this end.
func (w *writerEnd) close(ctx context.Context) error {
	if w.closed.Swap(true) {
		return nil
	}
	err := w.drain(ctx)
	w.counted(func(*WriterStats) {}) // a Stats that began before is over
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
		return w.bid(ctx)
	}
	err = w.await(ctx, w.watch[:], func() bool { return w.flag(endFlag) != 0 })
	if err != nil {
		return err
	}
	if err := w.takeCredit(); err != nil {
		return err
	}
	if w.flag(endFlag) == drained {
		return nil
	}
	if err := w.flush(ctx); err != nil { // what left from the stage has arrived
		return err
	}
	w.settled = true
	if w.unread() > 0 {
		return errReaderGone
	}
	return nil
}

// finish tells the reader that nothing follows, and waits for nobody but for width.
// It is false where there is no reader to be told.
func (w *writerEnd) finish(ctx context.Context) (said bool, err error) {
	if !w.joined.Load() {
		if w.broken.Load() != nil {
			return false, nil
		}
		w.abandon()
		_, deserted, err := w.join(ctx, false)
		if err != nil || !w.joined.Load() {
			return false, nil //nolint:nilerr // nothing was written, and a reader that comes later sees the card
		}
		w.deserted = deserted
	}
	switch {
	case w.deserted || w.finished:
		return true, nil
	case w.broken.Load() != nil:
		return false, nil
	}
	err = w.sayClose(ctx)
	w.finished = err == nil
	return err == nil, err
}

// unread is how many blocks the reader has not read.
func (w *writerEnd) unread() uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return uint32(w.count.Written) - uint32(w.credit)
}

// sayClose puts the last notification.
func (w *writerEnd) sayClose(ctx context.Context) error {
	if err := w.awaitWidth(ctx); err != nil && !errors.Is(err, errReaderGone) {
		return err
	}
	if w.flag(endFlag) != 0 {
		return nil
	}
	flag := rmalloc.Flag{Kind: rmalloc.Close}.Encode(w.slot.Lap())
	if err := w.putFlag(ctx, 0, nil, w.slot.Index(), flag); err != nil {
		return err
	}
	w.slot.Step()
	return w.tell()
}

func (w *writerEnd) stop() {}

// leave gives the memory back once the reader puts nothing more here, and says
// so to the reader. It waits for nothing: it comes again.
func (w *writerEnd) leave() bool {
	switch end := w.flag(endFlag); {
	case gone(w.fate()):
	case end == 0 || end == deserted && !w.direct && !w.settled && w.up:
		return false
	case w.joined.Load():
		if err := w.bid(noWait()); err != nil && w.fate() == nil {
			return false
		}
	}
	_ = w.release() // a lingering end has nobody to tell
	return true
}

// bid puts the bye flag, once: with it the reader's memory may be gone.
func (w *writerEnd) bid(ctx context.Context) error {
	if w.bade {
		return nil
	}
	err := w.putFlag(ctx, 0, nil, w.byeFlag(), 1)
	w.bade = err == nil
	return err
}

// gone tells that a rank puts nothing anywhere any more.
func gone(fate error) bool {
	return errors.Is(fate, runtime.ErrRankDead) || errors.Is(fate, errCarrierClosed)
}
