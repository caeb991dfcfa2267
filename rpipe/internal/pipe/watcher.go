package pipe

import "context"

// A watcher tells a reader's program of arrivals.
type watcher struct {
	r       *Reader
	arrived chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
	done    chan struct{}

	place uint64 // how many calls had read at the last look
	told  uint64 // and at the last value
	due   bool   // a value is; false behind a wait, as seek is: nothing will arrive any more
	seek  bool   // the writer's rank has left: the end must look for the writer
	wait  waiter
}

// Arrivals returns the channel of the reader's watcher, which the first call starts.
func (r *Reader) Arrivals() <-chan struct{} {
	r.calling.Lock()
	defer r.called()
	if w := r.watched.Load(); w != nil {
		return w.arrived
	}
	w := &watcher{r: r, arrived: make(chan struct{}), done: make(chan struct{}), told: nowhere}
	w.wait.init(r.End)
	w.ctx, w.cancel = context.WithCancel(r.open)
	if r.Usable() == nil && !r.Joined.Load() && r.Fate() == nil {
		// A writer that was closed before says no more. One that is opened later
		// finds this end, and its end comes as a notification.
		_ = r.connect(w.ctx, false)
	}
	r.watched.Store(w)
	go w.run()
	return w.arrived
}

// Stop ends the watcher. There may be none.
func (w *watcher) Stop() {
	if w != nil {
		w.cancel()
	}
}

// Join waits for the end of a watcher that was stopped. There may be none.
func (w *watcher) Join() {
	if w != nil {
		w.cancel()
		<-w.done
	}
}

// nowhere is no number of calls.
const nowhere = ^uint64(0)

// run is the watcher's goroutine. It waits for a block, tells the channel, and begins again when the
// reader has looked.
func (w *watcher) run() {
	defer close(w.done)
	defer close(w.arrived)
	defer w.cancel()
	for w.wait.await(w.ctx, w.news) == nil && (w.due || w.seek) {
		if w.seek {
			w.lookForWriter()
			continue
		}
		select {
		case w.arrived <- struct{}{}:
			w.told = w.place
		case <-w.ctx.Done():
			return
		}
	}
}

// lookForWriter looks whether a rank that has left opened the writer before.
func (w *watcher) lookForWriter() {
	w.r.calling.Lock()
	defer w.r.called()
	_ = w.r.connect(w.ctx, false)
}

// news looks whether there is something to do. While a call reads there is not;
// it rings when it is done.
func (w *watcher) news() bool {
	r := w.r
	if !r.calling.TryLock() {
		return false
	}
	defer r.calling.Unlock()
	w.place = r.calls
	over := r.eof || r.Usable() != nil || r.forsaken()
	w.due = !over && w.place != w.told && r.hasNext()
	w.seek = !over && r.Unsought()
	return over || w.due || w.seek
}
