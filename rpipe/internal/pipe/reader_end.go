package pipe

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

// A Reader is a Reader without its element type.
type Reader struct {
	*End
	*returns          // its mutex guards the blocks, too
	placed   *placed  // the blocks of a push pipe, and of a pull pipe once the writer is known to be mapped
	fetches  *fetches // of a pull pipe once the writer is known not to be mapped
	quick    *placed  // placed, if its blocks can be opened without the mutex
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
	watched atomic.Pointer[watcher] // tells of arrivals, once Arrivals was called
}

// borrows reports whether the reader uses blocks where they lie at the writer.
func (r *Reader) borrows() bool { return r.Spec.pull && r.placed != nil }

// NewReaderEnd makes the part of an end that is a reader's. Of a served heap it takes the close of
// the writer alone.
func NewReaderEnd(p *End) (*Reader, error) {
	heap := p.Spec.Heap
	if p.Spec.Served {
		heap = 0 // no block fits
	}
	r := &Reader{End: p, returns: newReturns(p), taker: rmalloc.NewFlagTaker(p.Spec.notifications(), heap, p.entry > 0)}
	p.Role, r.arrived = r, r.HasArrived
	r.open, r.endOpen = context.WithCancel(context.Background())
	if p.Spec.pull || p.Spec.Served {
		return r, nil
	}
	return r, r.usePlaced(p.Data[p.readerHeap():])
}

// openBlock takes the block of a notification, and waits for its bytes, where they must be
// fetched. Without room for them it waits, or fails with rmalloc.ErrFull. Called by Read alone.
func (r *Reader) openBlock(ctx context.Context, f rmalloc.Flag, wait bool) (rmalloc.Addr, []byte, error) {
	if r.placed == nil && r.fetches == nil {
		if err := r.reachBlocks(); err != nil {
			return 0, nil, err
		}
	}
	if r.placed != nil {
		return r.placed.open(f)
	}
	return r.fetches.read(ctx, f, wait)
}

// reachBlocks decides, when the writer is known, how blocks of a pull pipe are reached.
func (r *Reader) reachBlocks() error {
	if !r.Joined.Load() {
		return r.Fate() // blocks died with the writer
	}
	if remote := r.Remote(); remote != nil {
		return r.usePlaced(remote[r.writerHeap():])
	}
	q, err := newFetches(r)
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if err == nil {
		r.fetches = q
	}
	return err
}

// held returns the number of blocks that were read and not freed. Called with the mutex held.
func (r *Reader) held() int {
	if r.placed != nil {
		return r.placed.held()
	}
	return r.fetches.held()
}

// FreeBlock ends a block of the reader's.
func (r *Reader) FreeBlock(a rmalloc.Addr) error {
	if r.quick != nil && r.quick.freeQuietly(a) {
		return nil
	}
	r.Mu.Lock()
	err := r.Usable() // the memory is there until Close has had the mutex
	if err == nil {
		err = r.free(a)
	}
	last := err == nil && r.ending && r.held() == 0
	r.Mu.Unlock()
	if last {
		_ = r.end(r.Queue().NoWait(), drained) // it arrives, or the writer is gone
	}
	return err
}

// free ends a block. Called with the mutex held.
func (r *Reader) free(a rmalloc.Addr) error {
	switch {
	case r.placed != nil:
		return r.placed.free(a)
	case r.fetches != nil:
		return r.fetches.free(a)
	}
	return fmt.Errorf("%w: %v", ErrStale, a)
}
