package pipetest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// ReaderEnd returns a reader's end without its element type.
func ReaderEnd[T any](r *rpipe.Reader[T]) *pipe.Reader { return (*pipe.TypedReader[T])(r).End() }

// WriterEnd returns a writer's end without its element type.
func WriterEnd[T any](w *rpipe.Writer[T]) *pipe.Writer { return (*pipe.TypedWriter[T])(w).End() }

// A fullMemory has flags find no room in the queue to the peer while full is set.
type fullMemory struct {
	pipe.PeerMemory
	full *atomic.Bool
}

// Put implements pipe.PeerMemory.
func (m *fullMemory) Put(ctx context.Context, p fabric.Put) error {
	if p.Tell == fabric.TellByFlag && m.full.Load() {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return m.PeerMemory.Put(ctx, p)
}

// Clog has the reader's flags find no room in the queue to the writer while full is set.
func Clog(r *pipe.Reader, full *atomic.Bool) {
	r.Mu.Lock() // the timer may announce
	defer r.Mu.Unlock()
	r.PeerMemory = &fullMemory{r.PeerMemory, full}
}

// ClogWriter has the writer's flags find no room in the queue to the reader while full
// is set.
func ClogWriter(w *pipe.Writer, full *atomic.Bool) { w.PeerMemory = &fullMemory{w.PeerMemory, full} }

// A farDirectory has a peer whose rank responds to no attempt to connect while far is set.
type farDirectory struct {
	pipe.Directory
	far *atomic.Bool
}

// Find implements pipe.Directory.
func (d *farDirectory) Find(ctx context.Context, wait bool) (bool, error) {
	if d.far.Load() {
		return false, context.DeadlineExceeded
	}
	return d.Directory.Find(ctx, wait)
}

// Lose has the reader's rank respond to no attempt to connect while far is set.
func Lose(w *pipe.Writer, far *atomic.Bool) { w.Directory = &farDirectory{w.Directory, far} }

// A latentMemory hides each flag from the first load.
type latentMemory struct {
	pipe.PeerMemory
	loaded sync.Map // by flag
}

// Flag implements pipe.PeerMemory.
func (m *latentMemory) Flag(i int) uint64 {
	if _, again := m.loaded.LoadOrStore(i, true); !again {
		return 0
	}
	return m.PeerMemory.Flag(i)
}

// Hide has a reader's end, at which nothing has arrived, show a flag to the second look alone.
func Hide(r *pipe.Reader) { r.Words, r.PeerMemory = nil, &latentMemory{PeerMemory: r.PeerMemory} }

// Withdraw takes the memory of a reader's end away while its writer uses it.
func Withdraw(r *pipe.Reader) error { return r.PeerMemory.Release() }

// WithoutAnnouncer has the reader announce read and freed blocks only in its own calls. So tests
// count only the requests of their calls. The reader still tries again when an announcement finds
// no room in the queue.
func WithoutAnnouncer() rpipe.Option {
	return func(o *pipe.Options) error { o.Patience = -1; return nil }
}
