package pipe

import "context"

// Close ends the pipe at this end.
func (r *Reader) Close(ctx context.Context) error {
	if !r.Shut() {
		return nil
	}
	return r.depart(ctx)
}

// Shut has all calls fail from now on, those that wait as well. It is true for the
// first caller, who lets the end depart.
func (r *Reader) Shut() bool {
	if r.Closed.Swap(true) {
		return false
	}
	r.Ring() // a Read may wait
	r.endOpen()
	return true
}

// depart takes leave of the writer. The memory may go.
func (r *Reader) depart(ctx context.Context) error {
	r.Calling.Lock() // it has left
	defer r.Calling.Unlock()
	r.watched.Load().Join()
	err := r.part(ctx)
	r.Registry.Exit(r, r)
	return err
}

// part takes leave of the writer.
func (r *Reader) part(ctx context.Context) error {
	if r.Broken.Load() != nil && !r.Joined.Load() {
		return nil
	}
	if !r.Joined.Load() {
		r.Abandon()
		_, err := r.JoinLast(ctx)
		switch {
		case err != nil && r.Reachable():
			return err
		case err != nil:
			return nil //nolint:nilerr // a writer that cannot be reached has nothing to be told
		case !r.Joined.Load():
			r.Parting.Unseen = true
			return nil
		}
	}
	if err := r.sayEnd(ctx); err != nil && r.Fate() == nil {
		return err
	}
	return nil
}

// sayEnd puts the last word at the writer.
func (r *Reader) sayEnd(ctx context.Context) error {
	why := uint64(deserted)
	if r.Eof {
		why = drained
	}
	return r.end(ctx, why)
}

// Stop has nothing be put at the writer any more, and a watcher end.
func (r *Reader) Stop() {
	r.mute()
	r.watched.Load().Stop()
}

// Insist says what close could not, since the writer had not opened its end: that the
// reader is gone.
func (r *Reader) Insist(ctx context.Context) { r.Parting.Speak(ctx, r.isDue, r.say) }

// isDue reports whether there is something to say.
func (r *Reader) isDue() bool {
	return r.Fate() == nil && !r.Joined.Load() && r.OwesUnmet(r.Flag(r.byeFlag()) != 0)
}

// say looks for the writer. The registry tries again after a failure.
func (r *Reader) say(ctx context.Context) {
	r.Rejoin(ctx, r.Flag(r.byeFlag()) != 0)
	if r.Joined.Load() {
		_ = r.sayEnd(r.Queue().NoWait()) // it arrives, or the writer is gone
	}
}

// hasEnded reports whether the last word is at the writer.
func (r *Reader) hasEnded() bool {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return r.muted
}

// Leave gives the memory back once the writer puts nothing more here and knows that
// this end does not either.
func (r *Reader) Leave() bool {
	return r.Parting.Leave(r.mayLeave, func() {
		r.mute()
		r.Options.Tally.Drop(Gone(r.Fate()))
		_ = r.Release() // no caller is left to take the error
	})
}

func (r *Reader) mayLeave() bool {
	switch {
	case Gone(r.Fate()):
		return true
	case !r.Joined.Load():
		return r.MayLeaveUnmet(r.Flag(r.byeFlag()) != 0)
	}
	return r.Flag(r.byeFlag()) != 0 && r.hasEnded()
}
