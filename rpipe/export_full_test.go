package rpipe

import (
	"context"
	"sync/atomic"
)

// A fullLink has flags find no room in the queue to the other end while full is set.
type fullLink struct {
	link
	full *atomic.Bool
}

func (l *fullLink) putFlag(ctx context.Context, to int, src []byte, flag int, value uint64) error {
	if l.full.Load() {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return l.link.putFlag(ctx, to, src, flag, value)
}

// Clog has the reader's words find no room in the queue to the writer while full is set.
func (r *Reader[T]) Clog(full *atomic.Bool) {
	r.end.mu.Lock() // the reminder may announce
	defer r.end.mu.Unlock()
	r.end.link = &fullLink{r.end.link, full}
}

// HasNews tells that a Read has something to do.
func (f *FanIn[T]) HasNews() bool { return f.in.hasNews() }

// Clog is Reader's, of all pipes.
func (f *FanIn[T]) Clog(full *atomic.Bool) {
	for _, r := range f.readers {
		r.Clog(full)
	}
}

// Clog has the writer's flags find no room in the queue to the reader while full is set.
func (w *Writer[T]) Clog(full *atomic.Bool) { w.end.link = &fullLink{w.end.link, full} }

// A farLink has a reader's rank that answers no attempt to connect while far is set.
type farLink struct {
	link
	far *atomic.Bool
}

func (l *farLink) connect(ctx context.Context, wait bool, check func(card []byte) error) (bool, error) {
	if l.far.Load() {
		return false, context.DeadlineExceeded
	}
	return l.link.connect(ctx, wait, check)
}

// Lose has the reader's rank answer no attempt to connect while far is set.
func (w *Writer[T]) Lose(far *atomic.Bool) { w.end.link = &farLink{w.end.link, far} }
