package rpipe

import (
	"context"
	"errors"
	"io"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/wait"
)

// A readerEnd is a Reader without its element type.
type readerEnd struct {
	*pipe
	*returns // its mutex guards the books, too
	books    books
	quick    *pushed // books whose blocks can be opened without the mutex, or nil
	taker    rmalloc.FlagTaker
	next     rmalloc.Flag // taken from the ring, and not handed out yet
	have     bool
	eof      bool   // no notification follows
	ending   bool   // the last block that is freed lets the writer go; under the mutex
	polls    uint64 // that found no writer
	arrived  func() bool
	watch    [2]int // flags that arrived looks at

	// calling is held by calls that read: Close, which may come from elsewhere,
	// wakes one that waits and takes memory away only when it has left.
	calling sync.Mutex
	open    context.Context // until Close
	endOpen context.CancelFunc
	watched atomic.Pointer[watcher] // tells of arrivals, where that was asked for
}

// books are the blocks that the reader has: where they lie, and which addresses
// are good.
type books interface {
	// open makes a block of a notification and waits for its bytes, where they
	// must be fetched. Without room for them it waits, or fails with
	// rmalloc.ErrFull. Called without the mutex, by Read alone.
	open(ctx context.Context, f rmalloc.Flag, wait bool) (rmalloc.Addr, []byte, error)
	// free ends a block. Called with the mutex held.
	free(a rmalloc.Addr) error
	// held is how many blocks there are. Called with the mutex held.
	held() int
	// borrows tells that blocks lie at the writer.
	borrows() bool
}

func newReaderEnd(p *pipe) (*readerEnd, error) {
	r := &readerEnd{pipe: p, returns: newReturns(p), taker: rmalloc.NewFlagTaker(p.spec.width, p.spec.heap)}
	r.arrived = r.hasArrived
	r.open, r.endOpen = context.WithCancel(context.Background())
	var err error
	if p.spec.pull {
		r.books = newPulled(r)
	} else {
		var books *pushed
		books, err = newPushed(r)
		if r.books = books; p.words != nil {
			r.quick = books
		}
	}
	return r, err
}

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
	if r.quick == nil || r.have {
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
func (r *readerEnd) poll() (a rmalloc.Addr, mem []byte, ok bool, err error) {
	if a, mem, ok := r.readQuietly(); ok {
		return a, mem, true, nil
	}
	r.calling.Lock()
	defer r.called()
	ctx := context.Background()
	if !r.joined.Load() { // that takes a word from the writer's rank, which may have been stopped
		brief, cancel := context.WithTimeoutCause(r.open, lastMoment, errNoRoom)
		defer cancel()
		ctx = brief
	}
	if a, mem, ok, err = r.tryRead(ctx, false); !ok && err == nil && r.progress() {
		a, mem, ok, err = r.tryRead(ctx, false)
	}
	if !ok && err == nil {
		r.serve()
		err = r.seek(ctx)
	}
	switch {
	case errors.Is(err, errNoRoom):
		err = nil
	case err != nil && r.closed.Load():
		err = errSelfClosed
	}
	return a, mem, ok, err
}

// called ends a call that reads.
func (r *readerEnd) called() {
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
	if r.polls++; bits.OnesCount64(r.polls) != 1 {
		return nil
	}
	_, deserted, err := r.join(ctx, false)
	if deserted {
		r.endsUnwritten(ctx)
	}
	return err
}

// tryRead is readBlock that waits for no notification, and without wait not for
// this end's own memory either.
func (r *readerEnd) tryRead(ctx context.Context, wait bool) (a rmalloc.Addr, mem []byte, ok bool, err error) {
	if err := r.usable(); err != nil {
		return 0, nil, false, err
	}
	if ok, err := r.look(ctx); !ok || err != nil {
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
func (r *readerEnd) look(ctx context.Context) (bool, error) {
	if r.have {
		return true, nil
	}
	if r.eof {
		return false, io.EOF
	}
	f, verdict := r.taker.Take(r.flag(r.taker.Index()))
	if verdict == rmalloc.NotYet && r.forsaken() {
		if f, verdict = r.taker.Take(r.flag(r.taker.Index())); verdict == rmalloc.NotYet { // what has arrived counts
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
		if !r.joined.Load() && r.fate() == nil {
			_, _, _ = r.join(ctx, true) // the writer waits for the last word; Close tries again
		}
		r.finish(ctx)
		return false, io.EOF
	case f.Length%r.spec.size != 0:
		return false, r.breaks(errPartElement)
	}
	r.next, r.have = f, true
	return true, nil
}

// hasArrived tells that Read has something to do.
func (r *readerEnd) hasArrived() bool {
	return !r.eof && (r.notified() || r.forsaken()) || r.usable() != nil || r.waited()
}

// forsaken tells that the writer writes nothing more and does not say where the
// end is.
func (r *readerEnd) forsaken() bool { return r.flag(r.wantedFlag()) == gaveUp }

// notified tells that there is a notification to take.
func (r *readerEnd) notified() bool { return !r.taker.Awaits(r.flag(r.taker.Index())) }

// wait waits for a notification, on first use for the writer, too.
func (r *readerEnd) wait(ctx context.Context) error {
	if !r.joined.Load() {
		return r.meet(ctx)
	}
	r.watch = [2]int{r.taker.Index(), r.wantedFlag()}
	return r.await(ctx, r.watch[:], r.arrived)
}

// meet connects to the writer. One that was closed before has nothing to say.
func (r *readerEnd) meet(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.open, func() { cancel(errSelfClosed) })()
	_, deserted, err := r.join(ctx, true)
	if deserted {
		r.endsUnwritten(ctx)
	}
	return err
}

func (r *readerEnd) endsUnwritten(ctx context.Context) {
	r.eof = true
	r.finish(ctx)
}

// finish lets the writer know that everything was read. Blocks that lie at the
// writer keep it waiting.
func (r *readerEnd) finish(ctx context.Context) {
	r.mu.Lock()
	r.ending = r.books.borrows() && r.books.held() > 0
	busy := r.ending
	r.mu.Unlock()
	if !busy {
		// Close tries again.
		_ = r.end(ctx, drained)
	}
}

// freeBlock ends a block of the reader's.
func (r *readerEnd) freeBlock(a rmalloc.Addr) error {
	r.mu.Lock()
	err := r.usable() // the memory is there until Close has had the mutex
	if err == nil {
		err = r.books.free(a)
	}
	last := err == nil && r.ending && r.books.held() == 0
	r.mu.Unlock()
	if last {
		_ = r.end(r.noWait, drained) // Close tries again
	}
	return err
}

// close ends the pipe at this end.
func (r *readerEnd) close(ctx context.Context) error {
	if !r.shut() {
		return nil
	}
	return r.depart(ctx)
}

// shut has all calls fail from now on, those that wait as well. It is true for the
// first caller, who lets the end depart.
func (r *readerEnd) shut() bool {
	if r.closed.Swap(true) {
		return false
	}
	r.ring() // a Read may wait
	r.endOpen()
	return true
}

// depart takes leave of the writer. The memory may go.
func (r *readerEnd) depart(ctx context.Context) error {
	r.calling.Lock() // it has left
	defer r.calling.Unlock()
	r.watched.Load().join()
	err := r.part(ctx)
	r.registry.exit(r, r)
	return err
}

// part takes leave of the writer.
func (r *readerEnd) part(ctx context.Context) error {
	if r.broken.Load() != nil && !r.joined.Load() {
		return nil
	}
	if !r.joined.Load() {
		r.abandon()
		_, err := r.joinLast(ctx)
		switch {
		case err != nil && r.reachable():
			return err
		case err != nil:
			return nil //nolint:nilerr // a writer that cannot be reached has nothing to be told
		case !r.joined.Load():
			r.parting.unseen = true
			return nil
		}
	}
	if err := r.sayEnd(ctx); err != nil && r.fate() == nil {
		return err
	}
	return nil
}

// sayEnd puts the last word at the writer.
func (r *readerEnd) sayEnd(ctx context.Context) error {
	why := uint64(deserted)
	if r.eof {
		why = drained
	}
	return r.end(ctx, why)
}

// stop has nothing be put at the writer any more, and a watcher end.
func (r *readerEnd) stop() {
	r.mute()
	r.watched.Load().stop()
}

// insist says what close could not: that the reader is gone.
func (r *readerEnd) insist(ctx context.Context) { r.parting.speak(ctx, r.isDue, r.say) }

// isDue tells that there is something to say.
func (r *readerEnd) isDue() bool {
	switch {
	case r.fate() != nil:
		return false
	case !r.joined.Load():
		return r.owesUnmet(r.flag(r.byeFlag()) != 0)
	}
	return !r.hasEnded()
}

// say does what can be done now. What fails is tried again.
func (r *readerEnd) say(ctx context.Context) {
	if !r.joined.Load() {
		r.rejoin(ctx, r.flag(r.byeFlag()) != 0)
	}
	_ = r.sayEnd(ctx)
}

// hasEnded tells that the last word is at the writer.
func (r *readerEnd) hasEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.muted
}

// leave gives the memory back once the writer puts nothing more here and knows that
// this end does not either.
func (r *readerEnd) leave() bool {
	return r.parting.leave(r.mayLeave, func() {
		r.mute()
		r.options.tally.drop(gone(r.fate()))
		_ = r.release() // a lingering end has nobody to tell
	})
}

func (r *readerEnd) mayLeave() bool {
	switch {
	case gone(r.fate()):
		return true
	case !r.joined.Load():
		return r.mayLeaveUnmet(r.flag(r.byeFlag()) != 0)
	}
	return r.flag(r.byeFlag()) != 0 && r.hasEnded()
}
