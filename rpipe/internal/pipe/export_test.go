package pipe

import "context"

// WatchAtClose gives r a watcher that looks for the writer once Close has begun.
func WatchAtClose(r *Reader) {
	w := &watcher{r: r, done: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancel(r.open)
	r.watched.Store(w)
	go func() {
		defer close(w.done)
		<-w.ctx.Done()
		w.lookForWriter()
	}()
}
