package pipe

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

// A Reader is a Reader without its element type.
type Reader struct {
	*End
	*returns // its mutex guards the books, too
	Books    books
	quick    *pushed // books whose blocks can be opened without the mutex, or nil
	taker    rmalloc.FlagTaker
	next     rmalloc.Flag // taken from the ring, and not handed out yet
	at       int          // the flag that it was taken from
	have     bool
	eof      bool        // no notification follows, which the writer may not know yet
	ending   bool        // the last block that is freed lets the writer go; under the mutex
	stopped  atomic.Bool // Stop was called
	polls    uint64      // that found no writer
	calls    uint64      // that read, and have ended
	arrived  func() bool

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
	// Open makes a block of a notification and waits for its bytes, where they
	// must be fetched. Without room for them it waits, or fails with
	// rmalloc.ErrFull. Called without the mutex, by Read alone.
	Open(ctx context.Context, f rmalloc.Flag, wait bool) (rmalloc.Addr, []byte, error)
	// HasRoom reports whether open would not wait for room. Called by Read alone.
	HasRoom() bool
	// Free ends a block. Called with the mutex held.
	Free(a rmalloc.Addr) error
	// held is how many blocks there are. Called with the mutex held.
	held() int
	// ahead is how many blocks are taken from the ring, and not opened. Open then ignores
	// its notification. Called by Read alone.
	ahead() int
	// giveUp ends what is under way for these. No Read is under way.
	giveUp()
}

// borrows reports whether the reader uses blocks where they lie at the writer.
func (r *Reader) borrows() bool { return r.Spec.pull && r.Remote() != nil }

func newReaderEnd(p *End) (*Reader, error) {
	r := &Reader{End: p, returns: newReturns(p), taker: rmalloc.NewFlagTaker(p.Spec.notifications(), p.Spec.Heap, p.entry > 0)}
	p.Role, r.arrived = r, r.HasArrived
	r.open, r.endOpen = context.WithCancel(context.Background())
	var err error
	if p.Spec.pull {
		r.Books = &pulled{r: r}
	} else {
		var books *pushed
		books, err = newPushed(r)
		r.gather = books.settle
		if r.Books = books; p.Words != nil {
			r.quick = books
		}
	}
	return r, err
}

// FreeBlock ends a block of the reader's.
func (r *Reader) FreeBlock(a rmalloc.Addr) error {
	if r.quick != nil && r.quick.freeQuietly(a) {
		return nil
	}
	r.Mu.Lock()
	err := r.Usable() // the memory is there until Close has had the mutex
	if err == nil {
		err = r.Books.Free(a)
	}
	last := err == nil && r.ending && r.Books.held() == 0
	r.Mu.Unlock()
	if last {
		_ = r.end(r.Queue().NoWait(), drained) // it arrives, or the writer is gone
	}
	return err
}
