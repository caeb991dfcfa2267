package rpipe

import "context"

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

// insist says what close could not, since the writer had not opened its end: that the
// reader is gone.
func (r *readerEnd) insist(ctx context.Context) { r.parting.speak(ctx, r.isDue, r.say) }

// isDue reports whether there is something to say.
func (r *readerEnd) isDue() bool {
	return r.fate() == nil && !r.joined.Load() && r.owesUnmet(r.flag(r.byeFlag()) != 0)
}

// say looks for the writer. The registry tries again after a failure.
func (r *readerEnd) say(ctx context.Context) {
	r.rejoin(ctx, r.flag(r.byeFlag()) != 0)
	if r.joined.Load() {
		_ = r.sayEnd(r.queue().NoWait()) // it arrives, or the writer is gone
	}
}

// hasEnded reports whether the last word is at the writer.
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
		_ = r.release() // no caller is left to take the error
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
