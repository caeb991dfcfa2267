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
// first caller, which lets the end depart.
func (r *Reader) Shut() bool {
	if r.Closed.Swap(true) {
		return false
	}
	r.Ring() // a Read may wait
	r.endOpen()
	return true
}

// depart waits for a Read from elsewhere to leave, and tells the writer. The memory may go.
func (r *Reader) depart(ctx context.Context) error {
	r.calling.Lock()
	defer r.calling.Unlock()
	r.watched.Load().Join()
	r.Books.giveUp()
	err := r.Depart(ctx)
	r.Registry.Exit(r.End)
	return err
}

// Deliver puts the last announcement, and the end flag. If ctx ends first, both leave
// later.
func (r *Reader) Deliver(ctx context.Context) error {
	why := uint64(deserted)
	if r.eof {
		why = drained
	}
	if err := r.end(ctx, why); err != nil && r.Fate() == nil {
		return err
	}
	return nil
}

// Heard reports whether the writer puts nothing more here.
func (r *Reader) Heard() bool { return r.Flag(r.byeFlag()) != 0 }

// Finish reports whether the end flag is at the writer.
func (r *Reader) Finish(context.Context, bool) bool {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return r.muted
}

// Stop has nothing be put at the writer any more, and a watcher end.
func (r *Reader) Stop() {
	r.mute()
	r.watched.Load().Stop()
	if r.calling.TryLock() { // else the call ends with an error, and Close follows
		r.Books.giveUp()
		r.calling.Unlock()
	}
}
