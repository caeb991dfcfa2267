package rpipe

import (
	"context"
	"errors"
	"io"
	"math/bits"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/wait"
)

// readBlock returns the next block, waiting for it.
func (r *readerEnd) readBlock(ctx context.Context) (rmalloc.Addr, []byte, error) {
	a, mem, ok := r.readQuietly()
	if !ok && r.comesAtOnce() {
		a, mem, ok = r.readQuietly()
	}
	if ok {
		return a, mem, nil
	}
	r.calling.Lock()
	defer r.called()
	for {
		a, mem, ok, err := r.tryRead(ctx, true)
		if ok || err != nil {
			return a, mem, err
		}
		if err := r.wait(ctx); err != nil && !r.hasArrived() {
			return 0, nil, err
		}
		if a, mem, ok := r.readQuietly(); ok {
			return a, mem, nil
		}
		r.serve()
	}
}

// comesAtOnce looks for a notification for a moment, where that is all it takes.
func (r *readerEnd) comesAtOnce() bool {
	if r.quick == nil || r.have || r.remote() == nil {
		return false
	}
	flag := &r.words[r.taker.Index()]
	old := flag.Load()
	return r.taker.Awaits(old) && wait.Glance(flag, old)
}

// readQuietly is tryRead of a block that has arrived, without a lock, where there is
// nothing but the block to be looked after. A Close from elsewhere may be under way:
// what was loaded before that was seen is good.
func (r *readerEnd) readQuietly() (rmalloc.Addr, []byte, bool) {
	if r.quick == nil || r.have || r.eof || !r.joined.Load() || r.watched.Load() != nil || r.broken.Load() != nil {
		return 0, nil, false
	}
	word := r.words[r.taker.Index()].Load()
	if r.closed.Load() {
		return 0, nil, false
	}
	f, ok := r.taker.TakeData(word, r.spec.size)
	if !ok {
		return 0, nil, false
	}
	a, mem, ok := r.quick.openQuietly(f)
	if !ok {
		r.next, r.have = f, true
	}
	return a, mem, ok
}

// poll is readBlock that looks once, and once more after making progress.
func (r *readerEnd) poll(ctx context.Context) (a rmalloc.Addr, mem []byte, ok bool, err error) {
	if a, mem, ok := r.readQuietly(); ok {
		return a, mem, true, nil
	}
	r.calling.Lock()
	defer r.called()
	ctx, cancel := r.briefly(ctx)
	defer cancel()
	if a, mem, ok, err = r.tryRead(ctx, false); !ok && err == nil && r.progress() {
		a, mem, ok, err = r.tryRead(ctx, false)
	}
	if !ok && err == nil {
		r.serve()
		err = r.seek(ctx)
	}
	switch {
	case errors.Is(err, ErrWouldBlock):
		err = nil
	case err != nil && r.closed.Load():
		err = errSelfClosed
	}
	return a, mem, ok, err
}

// briefly bounds how long a call that does not wait asks the writer's rank to connect:
// its process may be stopped. The call ends with ErrWouldBlock then, and reads nothing.
func (r *readerEnd) briefly(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.joined.Load() {
		return ctx, func() {}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lastMoment, ErrWouldBlock)
	stop := context.AfterFunc(r.open, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// called ends a call that reads.
func (r *readerEnd) called() {
	r.calls++
	r.calling.Unlock()
	if r.watched.Load() != nil {
		r.ring() // the watcher looks at what comes next
	}
}

// seek looks now and then for a writer that has not written yet: it may have
// been closed, or be another kind of pipe. Looking is a message to its rank, so
// it comes at the polls 1, 2, 4, 8 and so on.
func (r *readerEnd) seek(ctx context.Context) error {
	if r.joined.Load() {
		return r.fate()
	}
	if !r.seeks() {
		return nil
	}
	_, deserted, err := r.join(ctx, false)
	r.eof = r.eof || deserted
	return err
}

// seeks counts a poll, and reports whether it looks for the writer.
func (r *readerEnd) seeks() bool {
	r.polls++
	return bits.OnesCount64(r.polls) == 1
}

// tryRead is readBlock that waits for no notification, and without wait not for
// this end's own memory either. Without wait it reads only what hasNext tells of.
func (r *readerEnd) tryRead(ctx context.Context, wait bool) (a rmalloc.Addr, mem []byte, ok bool, err error) {
	if err := r.usable(); err != nil {
		return 0, nil, false, err
	}
	if !wait && !r.hasNext() {
		return 0, nil, false, nil
	}
	if ok, err := r.look(ctx, wait); !ok || err != nil {
		return 0, nil, false, err
	}
	// Connected late, for what goes back. A writer that is gone needs nothing.
	if !r.joined.Load() && r.fate() == nil {
		if err := r.meet(ctx); err != nil && r.fate() == nil {
			return 0, nil, false, err
		}
	}
	a, mem, err = r.books.open(ctx, r.next, wait)
	if errors.Is(err, rmalloc.ErrFull) {
		return 0, nil, false, nil
	}
	if err != nil {
		return 0, nil, false, err
	}
	r.have = false
	return a, mem, true, nil
}

// look takes the next notification from the ring, if there is one. The load pairs
// with the writer's store of the flag, behind the block.
func (r *readerEnd) look(ctx context.Context, wait bool) (bool, error) {
	if r.have {
		return true, nil
	}
	if r.eof {
		return false, r.finish(ctx, wait)
	}
	f, verdict := r.taker.Take(r.flag(r.taker.Index()))
	if verdict == rmalloc.NotYet && r.forsaken() {
		if f, verdict = r.taker.Take(r.flag(r.taker.Index())); verdict == rmalloc.NotYet { // a block that has arrived counts
			return false, r.breaks(errWriterGaveUp)
		}
	}
	switch {
	case verdict == rmalloc.NotYet:
		return false, nil
	case verdict == rmalloc.Corrupt:
		return false, r.breaks(errBadFlag)
	case f.Kind == rmalloc.Close:
		r.eof = true
		return false, r.finish(ctx, wait)
	case f.Length%r.spec.size != 0:
		return false, r.breaks(errPartElement)
	}
	r.next, r.have = f, true
	return true, nil
}

// hasNext reports whether the next read returns something: a block for which there is room,
// the end, or an error. A block that was taken from the ring and not handed out counts:
// no notification follows it. Reads that wait and reads that do not both go by this.
func (r *readerEnd) hasNext() bool {
	switch {
	case r.usable() != nil || r.eof:
		return true
	case r.have:
		return r.books.hasRoom()
	}
	return r.notified() || r.forsaken()
}

// hasArrived reports whether the next read has something to do: it returns something, or
// tells a writer that waits how much was read.
func (r *readerEnd) hasArrived() bool { return r.hasNext() || r.waited() }

// forsaken reports whether the writer writes nothing more and does not say where the
// end is.
func (r *readerEnd) forsaken() bool { return r.flag(r.wantedFlag()) == gaveUp }

// notified reports whether there is a notification to take.
func (r *readerEnd) notified() bool { return !r.taker.Awaits(r.flag(r.taker.Index())) }

// wait waits for a notification, on first use for the writer, too.
func (r *readerEnd) wait(ctx context.Context) error {
	if !r.joined.Load() {
		return r.meet(ctx)
	}
	r.watch = [2]int{r.taker.Index(), r.wantedFlag()}
	return r.await(ctx, r.watch[:], r.arrived)
}

// connectNow is meet for a call of the program.
func (r *readerEnd) connectNow(ctx context.Context) error {
	r.calling.Lock()
	defer r.called()
	if err := r.usable(); err != nil || r.joined.Load() {
		return err
	}
	return r.meet(ctx)
}

// meet connects to the writer. One that was closed before has nothing to say.
func (r *readerEnd) meet(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.open, func() { cancel(errSelfClosed) })()
	_, deserted, err := r.join(ctx, true)
	r.eof = r.eof || deserted
	return err
}

// finish lets the writer know that everything was read, and returns io.EOF. The writer's
// Close waits for that word: when ctx ends first, finish returns the cause, and the next
// read tries again. Without wait the word leaves later if there is no room in the queue.
// Blocks that lie at the writer keep it waiting.
func (r *readerEnd) finish(ctx context.Context, wait bool) error {
	r.mu.Lock()
	r.ending = r.books.borrows() && r.books.held() > 0
	busy := r.ending
	r.mu.Unlock()
	if busy {
		return io.EOF
	}
	var err error
	if !r.joined.Load() && r.fate() == nil {
		err = r.meet(ctx)
	}
	switch {
	case err != nil:
	case wait || !r.joined.Load():
		err = r.end(ctx, drained)
	default:
		_ = r.end(r.queue().NoWait(), drained) // it arrives, or the writer is gone
	}
	if err != nil && errors.Is(err, context.Cause(ctx)) && r.fate() == nil {
		return err
	}
	return io.EOF // a writer that cannot be told waits for nothing
}
