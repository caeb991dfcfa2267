package pipetest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// ReaderEnd returns a reader's end without its element type.
func ReaderEnd[T any](r *rpipe.Reader[T]) *pipe.Reader { return (*pipe.TypedReader[T])(r).End() }

// WriterEnd returns a writer's end without its element type.
func WriterEnd[T any](w *rpipe.Writer[T]) *pipe.Writer { return (*pipe.TypedWriter[T])(w).End() }

// A fullLink has flags find no room in the queue to the peer while full is set.
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

// Clog has the reader's flags find no room in the queue to the writer while full is set.
func Clog(r *pipe.Reader, full *atomic.Bool) {
	r.Mu.Lock() // the timer may announce
	defer r.Mu.Unlock()
	r.Link = &fullLink{r.Link, full}
}

// ClogWriter has the writer's flags find no room in the queue to the reader while full
// is set.
func ClogWriter(w *pipe.Writer, full *atomic.Bool) { w.Link = &fullLink{w.Link, full} }

// A farLink has a peer whose rank answers no attempt to connect while far is set.
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
func Lose(w *pipe.Writer, far *atomic.Bool) { w.Link = &farLink{w.Link, far} }

// A latentLink shows arrivals once its rank makes progress, and not before.
type latentLink struct {
	pipe.Link
	shown atomic.Bool
}

func (l *latentLink) Flag(i int) uint64 {
	if !l.shown.Load() {
		return 0
	}
	return l.Link.Flag(i)
}

func (l *latentLink) Progress() bool {
	l.shown.Store(true)
	return true
}

// Hide has a reader's end, at which nothing has arrived, show what arrives only behind
// progress.
func Hide(r *pipe.Reader) { r.Link = &latentLink{Link: r.Link} }

// Withdraw takes the memory of a reader's end away while its writer uses it.
func Withdraw(r *pipe.Reader) error {
	m := &r.Link.(*pipe.FabricLink).Mine
	if m.Slab != nil {
		return errors.New("a piece of a slab has no keys of its own")
	}
	return errors.Join(m.Region.Close(), m.Whole.Close())
}

// WithoutAnnouncer has the reader tell the writer what was read and freed only when it
// does something itself, so that tests count only what they ask for. The reader still
// tries again when an announcement finds no room in the queue.
func WithoutAnnouncer() rpipe.Option {
	return func(o *pipe.Options) error { o.Patience = -1; return nil }
}
