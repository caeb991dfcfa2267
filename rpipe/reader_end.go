package rpipe

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

// A readerEnd is a Reader without its element type.
type readerEnd struct {
	*pipe
	*returns // its mutex guards the books, too
	books    books
	quick    *pushed // books whose blocks can be opened without the mutex, or nil
	taker    rmalloc.FlagTaker
	next     rmalloc.Flag // taken from the ring, and not handed out yet
	have     bool
	eof      bool   // no notification follows, which the writer may not know yet
	ending   bool   // the last block that is freed lets the writer go; under the mutex
	polls    uint64 // that found no writer
	calls    uint64 // that read, and have ended
	arrived  func() bool
	watch    [2]int // flags that arrived looks at

	// calling is held by calls that read: Close, which may come from elsewhere,
	// wakes one that waits and takes memory away only when it has left.
	calling sync.Mutex
	open    context.Context // until Close
	endOpen context.CancelFunc
	watched atomic.Pointer[watcher] // tells of arrivals, where that was asked for
}

// books are the blocks that the reader has: where they lie, and which addresses
// are good.
type books interface {
	// open makes a block of a notification and waits for its bytes, where they
	// must be fetched. Without room for them it waits, or fails with
	// rmalloc.ErrFull. Called without the mutex, by Read alone.
	open(ctx context.Context, f rmalloc.Flag, wait bool) (rmalloc.Addr, []byte, error)
	// hasRoom reports whether open would not wait for room. Called by Read alone.
	hasRoom() bool
	// free ends a block. Called with the mutex held.
	free(a rmalloc.Addr) error
	// held is how many blocks there are. Called with the mutex held.
	held() int
	// borrows reports whether blocks lie at the writer.
	borrows() bool
}

func newReaderEnd(p *pipe) (*readerEnd, error) {
	r := &readerEnd{pipe: p, returns: newReturns(p), taker: rmalloc.NewFlagTaker(p.spec.notifications(), p.spec.heap)}
	r.arrived = r.hasArrived
	r.open, r.endOpen = context.WithCancel(context.Background())
	var err error
	if p.spec.pull {
		r.books = newPulled(r)
	} else {
		var books *pushed
		books, err = newPushed(r)
		if r.books = books; p.words != nil {
			r.quick = books
		}
	}
	return r, err
}

// freeBlock ends a block of the reader's.
func (r *readerEnd) freeBlock(a rmalloc.Addr) error {
	r.mu.Lock()
	err := r.usable() // the memory is there until Close has had the mutex
	if err == nil {
		err = r.books.free(a)
	}
	last := err == nil && r.ending && r.books.held() == 0
	r.mu.Unlock()
	if last {
		_ = r.end(r.queue().NoWait(), drained) // it arrives, or the writer is gone
	}
	return err
}
