package rpipe

import "context"

// Arrivals returns a channel for select beside other channels. A value says that
// something has arrived since the last one was sent and something was read, so
// one call of TryRead after each value loses nothing:
//
//	arrivals := r.Arrivals()
//	for {
//		select {
//		case <-arrivals:
//			b, err := r.TryRead() // ErrWouldBlock: nothing; io.EOF: the end
//			...
//		case <-other:
//		}
//	}
//
// Reading more than one block after a value is fine, too; then some value may
// find nothing. The next value comes after a call that reads. When
// nothing will arrive any more, the channel is closed: TryRead returns what there
// is, then io.EOF or the error. Close, and the end of the job, close it as well.
//
// The first call has a goroutine wait for this reader. Without one nothing is
// spent on this. A writer that was opened with other options and sends nothing is
// not noticed here, but by Read and TryRead. Kind: local, the first call asks the
// writer's rank.
func (r *Reader[T]) Arrivals() <-chan struct{} { return r.end.arrivals() }

// A watcher tells a reader's program of arrivals.
type watcher struct {
	r       *readerEnd
	arrived chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
	done    chan struct{}

	place uint64 // how many calls had read at the last look
	told  uint64 // and at the last value
	flags [2]int // of the notification to come, and of a writer that waits
	due   bool   // a value is
	over  bool   // nothing will arrive any more
}

func (r *readerEnd) arrivals() <-chan struct{} {
	r.calling.Lock()
	defer r.called()
	if w := r.watched.Load(); w != nil {
		return w.arrived
	}
	w := &watcher{r: r, arrived: make(chan struct{}), done: make(chan struct{}), told: nowhere}
	w.ctx, w.cancel = context.WithCancel(r.open)
	if r.usable() == nil && !r.joined.Load() && r.fate() == nil {
		// A writer that was closed before says no more. One that is opened later
		// finds this end, and its end comes as a notification.
		if _, deserted, err := r.join(w.ctx, false); err == nil && deserted {
			r.eof = true
		}
	}
	r.watched.Store(w)
	go w.run()
	return w.arrived
}

// stop ends the watcher. There may be none.
func (w *watcher) stop() {
	if w != nil {
		w.cancel()
	}
}

// join waits for the end of a watcher that was stopped. There may be none.
func (w *watcher) join() {
	if w != nil {
		w.cancel()
		<-w.done
	}
}

// nowhere is no number of calls.
const nowhere = ^uint64(0)

func (w *watcher) run() {
	defer close(w.done)
	defer close(w.arrived)
	defer w.cancel()
	for !w.over {
		if w.r.alsoAwait(w.ctx, w.flags[:], w.news) != nil {
			return
		}
		if !w.due {
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

// news looks whether there is something to do. While a call reads there is not;
// it rings when it is done.
func (w *watcher) news() bool {
	r := w.r
	if !r.calling.TryLock() {
		return false
	}
	defer r.calling.Unlock()
	w.place = r.calls
	at := [2]int{r.taker.Index(), r.wantedFlag()}
	elsewhere := at != w.flags
	w.flags = at
	w.over = r.eof || r.usable() != nil || r.forsaken()
	w.due = !w.over && w.place != w.told && r.hasNext()
	return w.over || w.due || elsewhere
}
