package rpipe

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A fullLink has flags find no room in the queue to the other end while full is set.
type fullLink struct {
	pipe.Link
	full *atomic.Bool
}

func (l *fullLink) PutFlag(ctx context.Context, to int, src []byte, flag int, value uint64) error {
	if l.full.Load() {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return l.Link.PutFlag(ctx, to, src, flag, value)
}

// Clog has the reader's words find no room in the queue to the writer while full is set.
func (r *Reader[T]) Clog(full *atomic.Bool) {
	r.end().Mu.Lock() // the reminder may announce
	defer r.end().Mu.Unlock()
	r.end().Link = &fullLink{r.end().Link, full}
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
func (w *Writer[T]) Clog(full *atomic.Bool) { w.end().Link = &fullLink{w.end().Link, full} }

// A farLink has a reader's rank that answers no attempt to connect while far is set.
type farLink struct {
	pipe.Link
	far *atomic.Bool
}

func (l *farLink) Connect(ctx context.Context, wait bool, check func(card []byte) error) (bool, error) {
	if l.far.Load() {
		return false, context.DeadlineExceeded
	}
	return l.Link.Connect(ctx, wait, check)
}

// Lose has the reader's rank answer no attempt to connect while far is set.
func (w *Writer[T]) Lose(far *atomic.Bool) { w.end().Link = &farLink{w.end().Link, far} }
