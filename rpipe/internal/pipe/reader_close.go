package pipe

import "context"

// Close ends the pipe at this end: all calls fail from now on, those that wait as well. Close waits for
// a Read from elsewhere to leave, and tells the writer. The memory may go then.
func (r *Reader) Close(ctx context.Context) error {
	if r.Closed.Swap(true) {
		return nil
	}
	r.Ring() // a Read may wait
	r.endOpen()
	r.watched.Load().Join() // ahead of calling: the watcher may wait for that
	r.calling.Lock()
	defer r.calling.Unlock()
	r.watched.Load().Join() // a call of Arrivals may have begun another
	r.fetches.giveUp()
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

// Stop mutes the reader, cancels its watcher, and ends its gets. If another goroutine is in a
// call that reads, that call ends the gets as it returns.
func (r *Reader) Stop() {
	r.mute()
	r.watched.Load().Stop()
	r.stopped.Store(true)
	r.endGets()
}

// endGets ends the gets that are under way, unless a call that reads is. It may wait until
// the device has dropped them.
func (r *Reader) endGets() {
	if r.calling.TryLock() {
		r.fetches.giveUp()
		r.calling.Unlock()
	}
}
