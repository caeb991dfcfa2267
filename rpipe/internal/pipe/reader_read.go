package pipe

import (
	"context"
	"errors"
	"io"
	"math/bits"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/wait"
)

// ReadBlock returns the next block, waiting for it.
func (r *Reader) ReadBlock(ctx context.Context) (rmalloc.Addr, []byte, error) {
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
		if err := r.wait(ctx); err != nil && !r.HasArrived() {
			return 0, nil, err
		}
		if a, mem, ok := r.readQuietly(); ok {
			return a, mem, nil
		}
		r.Serve()
	}
}

// comesAtOnce looks for a notification for a moment, where that is all it takes. Members that share
// cores do not: the writer may need this core.
func (r *Reader) comesAtOnce() bool {
	if r.quick == nil || r.have || r.Remote() == nil || r.team.Crowded() {
		return false
	}
	flag := &r.Words[r.place()]
	old := flag.Load()
	return r.taker.Awaits(old) && wait.Glance(flag, old)
}

// readQuietly is tryRead of a block that has arrived, without a lock, where the reader needs
// nothing but the block. Another goroutine may call Close meanwhile: a word that was loaded
// before the reader saw that is good.
func (r *Reader) readQuietly() (rmalloc.Addr, []byte, bool) {
	if r.quick == nil || r.have || r.eof || !r.Joined.Load() || r.watched.Load() != nil || r.Broken.Load() != nil {
		return 0, nil, false
	}
	place := r.place()
	word := r.Words[place].Load()
	f, ok := r.taker.TakeData(word, r.Spec.Size)
	if !ok || r.Closed.Load() {
		return 0, nil, false
	}
	a, mem, ok := r.quick.openQuietly(f, place)
	if !ok {
		r.next, r.at, r.have = f, place, true
	}
	return a, mem, ok
}

// Poll is ReadBlock that looks once, and once more after making progress.
func (r *Reader) Poll(ctx context.Context) (a rmalloc.Addr, mem []byte, ok bool, err error) {
	if a, mem, ok := r.readQuietly(); ok {
		return a, mem, true, nil
	}
	r.calling.Lock()
	defer r.called()
	ctx, cancel := r.briefly(ctx)
	defer cancel()
	if a, mem, ok, err = r.tryRead(ctx, false); !ok && err == nil && r.Progress() {
		a, mem, ok, err = r.tryRead(ctx, false)
	}
	if !ok && err == nil {
		r.Serve()
		a, mem, ok, err = r.lookForWriter(ctx)
	}
	switch {
	case errors.Is(err, ErrWouldBlock):
		err = nil
	case err != nil && r.Closed.Load():
		err = ErrSelfClosed
	}
	return a, mem, ok, err
}

// lookForWriter returns why no block follows, nil if one may. It looks for a block once more ahead of an
// error: a block that has arrived counts. So does one that waits for memory, while its bytes can
// be fetched.
func (r *Reader) lookForWriter(ctx context.Context) (a rmalloc.Addr, mem []byte, ok bool, err error) {
	gone := r.seek(ctx)
	if gone == nil {
		return 0, nil, false, nil
	}
	r.Progress()
	a, mem, ok, err = r.tryRead(ctx, false)
	if !ok && err == nil && (!r.have || r.Fate() != nil) {
		err = gone
	}
	return a, mem, ok, err
}

// briefly bounds how long a call that does not wait tries to connect to the writer's rank:
// its process may be stopped. The call ends with ErrWouldBlock then, and reads nothing.
func (r *Reader) briefly(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Joined.Load() {
		return ctx, func() {}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lastMoment, ErrWouldBlock)
	ctx, end := Until(ctx, r.open)
	return ctx, func() { end(); cancel() }
}

// called ends a call that reads. It looks at stopped behind the unlock: either Stop takes the
// lock and ends the gets, or called sees stopped.
func (r *Reader) called() {
	r.calls++
	r.calling.Unlock()
	if r.stopped.Load() {
		r.endGets()
	}
	if r.watched.Load() != nil {
		r.Ring() // the watcher looks at the next notification
	}
}

// seek looks now and then for a writer that has not written yet: it may have
// been closed, or be another kind of pipe. Looking is a message to its rank, so
// it comes at the polls 1, 2, 4, 8 and so on.
func (r *Reader) seek(ctx context.Context) error {
	if r.Joined.Load() || !r.Seeks() {
		return r.Presence()
	}
	return r.connect(ctx, false)
}

// Seeks counts a poll, and reports whether it looks for the writer.
func (r *Reader) Seeks() bool {
	r.polls++
	return bits.OnesCount64(r.polls) == 1
}

// tryRead is ReadBlock that waits for no notification, and without wait not for
// this end's own memory either. Without wait it reads only what hasNext tells of.
func (r *Reader) tryRead(ctx context.Context, wait bool) (a rmalloc.Addr, mem []byte, ok bool, err error) {
	if err := r.Usable(); err != nil {
		return 0, nil, false, err
	}
	if !wait && !r.hasNext() {
		return 0, nil, false, nil
	}
	if ok, err := r.look(ctx, wait); !ok || err != nil {
		return 0, nil, false, err
	}
	// Connected late, for what goes back. A writer that is gone needs nothing.
	if !r.Joined.Load() && r.Fate() == nil {
		if err := r.meet(ctx); err != nil && r.Fate() == nil {
			return 0, nil, false, err
		}
	}
	a, mem, err = r.openBlock(ctx, r.next, wait)
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
func (r *Reader) look(ctx context.Context, wait bool) (bool, error) {
	if r.have || r.fetches.aheadOfRead() > 0 {
		return true, nil
	}
	if r.eof {
		return false, r.finish(ctx, wait)
	}
	place := r.place()
	f, verdict := r.taker.Take(r.Flag(place))
	if verdict == rmalloc.NotYet && r.forsaken() {
		if f, verdict = r.taker.Take(r.Flag(place)); verdict == rmalloc.NotYet { // a block that has arrived counts
			return false, r.Breaks(errWriterGaveUp)
		}
	}
	switch {
	case verdict == rmalloc.NotYet:
		return false, nil
	case verdict == rmalloc.Corrupt:
		return false, r.Breaks(errBadFlag)
	case f.Kind == rmalloc.Close:
		r.eof = true
		return false, r.finish(ctx, wait)
	case f.Length%r.Spec.Size != 0:
		return false, r.Breaks(errPartElement)
	}
	r.next, r.at, r.have = f, place, true
	return true, nil
}

// hasNext reports whether the next read returns something: a block for which there is room,
// the end, or an error. A block that was taken from the ring and not handed out counts:
// no notification follows it. Reads that wait and reads that do not both go by this.
func (r *Reader) hasNext() bool {
	switch {
	case r.Usable() != nil || r.eof || r.fetches.aheadOfRead() > 0:
		return true
	case r.have:
		return r.fetches.hasRoom()
	}
	return r.notified() || r.forsaken()
}

// HasArrived reports whether the next read has something to do: it returns something, or
// tells a writer that waits how much was read.
func (r *Reader) HasArrived() bool { return r.hasNext() || r.waited() }

// forsaken reports whether the writer writes nothing more and does not say where the
// end is.
func (r *Reader) forsaken() bool { return r.Flag(r.WantedFlag()) == gaveUp }

// notified reports whether there is a notification to take.
func (r *Reader) notified() bool { return !r.taker.Awaits(r.Flag(r.place())) }

// place returns the flag at which the next notification arrives.
func (r *Reader) place() int { return r.Notification(r.taker.Index()) }

// wait waits for a notification, on first use for the writer, too.
func (r *Reader) wait(ctx context.Context) error {
	if !r.Joined.Load() {
		return r.meet(ctx)
	}
	return r.Await(ctx, r.arrived)
}

// ConnectNow is meet for a call of the program.
func (r *Reader) ConnectNow(ctx context.Context) error {
	r.calling.Lock()
	defer r.called()
	if err := r.Usable(); err != nil || r.Joined.Load() {
		return err
	}
	return r.meet(ctx)
}

// connect is Join. A writer that was closed before has nothing to say.
func (r *Reader) connect(ctx context.Context, wait bool) error {
	err := r.Join(ctx, wait)
	r.eof = r.eof || r.Deserted
	return err
}

// meet connects to the writer, until Close.
func (r *Reader) meet(ctx context.Context) error {
	ctx, cancel := Until(ctx, r.open)
	defer cancel()
	return r.connect(ctx, true)
}

// Until returns ctx as it ends at Close, too: open is the context of an end until then.
func Until(ctx, open context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(open, func() { cancel(ErrSelfClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// finish lets the writer know that everything was read, and returns io.EOF. The writer's
// Close waits for that word: when ctx ends first, finish returns the cause, and the next
// read tries again. Without wait the word leaves later if there is no room in the queue.
// Blocks that lie at the writer keep it waiting.
func (r *Reader) finish(ctx context.Context, wait bool) error {
	r.Mu.Lock()
	r.ending = r.borrows() && r.held() > 0
	busy := r.ending
	r.Mu.Unlock()
	if busy {
		return io.EOF
	}
	var err error
	if !r.Joined.Load() && r.Fate() == nil {
		err = r.meet(ctx)
	}
	switch {
	case err != nil:
	case wait || !r.Joined.Load():
		err = r.end(ctx, drained)
	default:
		_ = r.end(r.Queue().NoWait(), drained) // it arrives, or the writer is gone
	}
	if err != nil && errors.Is(err, context.Cause(ctx)) && r.Fate() == nil {
		return err
	}
	return io.EOF // a writer that cannot be told waits for nothing
}
