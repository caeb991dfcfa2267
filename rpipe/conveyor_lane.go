package rpipe

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

// A lane gathers what goes to one rank in a block, which leaves when it is full,
// when the conveyor's time is up, or by hand.
type lane[T any] struct {
	w     *Writer[T]
	batch int // elements of a block

	mu     sync.Mutex // the conveyor's timer comes from elsewhere
	block  Block[T]
	filled int
	open   bool
	over   bool          // the reader was told that nothing follows
	sealed bool          // the block was shrunk to what it holds, and waits to be written
	asked  bool          // the reader knows that there is no room
	inTime atomic.Uint64 // blocks that left since their time was up
}

// errNoRoom: what does not wait would have to.
var errNoRoom = errors.New("no room")

// space returns room for n elements at the end of the block, of which the caller
// fills the first n. With wait it waits for a block, else it is errNoRoom.
func (l *lane[T]) space(ctx context.Context, n int, wait bool) ([]T, error) {
	if l.over {
		return nil, errSelfClosed
	}
	if l.open && (l.sealed || l.filled+n > l.block.Len()) {
		if err := l.send(ctx, wait); err != nil {
			return nil, err
		}
	}
	if !l.open {
		if err := l.begin(ctx, n, wait); err != nil {
			return nil, err
		}
	}
	return l.block.Mem()[l.filled : l.filled+n : l.filled+n], nil
}

// begin takes a block.
func (l *lane[T]) begin(ctx context.Context, n int, wait bool) (err error) {
	n = max(n, l.batch)
	if wait {
		l.block, err = l.w.Alloc(ctx, n)
		l.open = err == nil
		return err
	}
	up, err := l.w.end.comesUp(ctx)
	if err == nil && !up {
		err = errNoRoom
	}
	var a rmalloc.Addr
	if err == nil {
		a, err = l.reserve(ctx, n*l.w.end.spec.size)
	}
	switch {
	case err == nil:
		l.block, l.open, l.asked = l.w.block(a, n), true, false
		return nil
	case errors.Is(err, errNoRoom):
		return errNoRoom
	}
	return l.w.end.fail("Alloc", err)
}

// reserve takes a block of n bytes. The reader is told once that there is none.
func (l *lane[T]) reserve(ctx context.Context, n int) (a rmalloc.Addr, err error) {
	if l.w.end.spec.sync == Immediate { // to ask what was freed takes as long as a read does
		brief, cancel := context.WithTimeoutCause(context.Background(), lastMoment, errNoRoom)
		defer cancel()
		ctx = brief
	}
	a, err = l.w.end.reserve(ctx, n, false)
	if errors.Is(err, rmalloc.ErrFull) && !l.asked {
		a, err = l.w.end.reserve(ctx, n, true)
		l.asked = err == nil || errors.Is(err, rmalloc.ErrFull)
	}
	if errors.Is(err, rmalloc.ErrFull) || errors.Is(err, context.Canceled) {
		err = errNoRoom
	}
	return a, err
}

// hasWidth tells that a block can be written without a wait. The reader is told
// once that it cannot.
func (l *lane[T]) hasWidth(noWait context.Context) (bool, error) {
	ok, err := l.w.end.hasWidth()
	if ok || err != nil || l.asked {
		return ok, err
	}
	err = l.w.end.want(noWait, wantsWidth)
	if errors.Is(err, context.Canceled) {
		return false, nil // in the queue to that rank: it is asked again
	}
	if err != nil {
		return false, err
	}
	l.asked = true
	return l.w.end.hasWidth()
}

// commit keeps n elements that were filled, and tells that the block is full.
func (l *lane[T]) commit(n int) (full bool) {
	l.filled += n
	return l.filled == l.block.Len()
}

// send writes the block, if it holds anything. Without wait it is errNoRoom while as
// many blocks as the pipe is wide are not read yet.
func (l *lane[T]) send(ctx context.Context, wait bool) error {
	if !l.open || l.filled == 0 {
		return nil
	}
	if !wait {
		if ok, err := l.hasWidth(ctx); err != nil {
			return l.w.end.fail("Write", err)
		} else if !ok {
			return errNoRoom
		}
	}
	if l.filled < l.block.Len() {
		b, err := l.w.Shrink(l.block, l.filled)
		if err != nil {
			return err
		}
		l.block, l.sealed = b, true
	}
	if err := l.w.Write(ctx, l.block); err != nil {
		l.sealed = true
		if !wait && errors.Is(err, context.Canceled) {
			return errNoRoom // in the queue to that rank
		}
		return err
	}
	l.open, l.sealed, l.asked, l.filled = false, false, false, 0
	return nil
}

// late sends what has waited long enough. It tells that this must be tried again.
func (l *lane[T]) late(noWait context.Context) (again bool) {
	if !l.mu.TryLock() {
		return true // whoever fills the block may wait for room
	}
	defer l.mu.Unlock()
	had := l.filled
	if err := l.send(noWait, false); err != nil {
		return errors.Is(err, errNoRoom) // anything else the next push meets, too
	}
	if had > 0 {
		l.inTime.Add(1)
	}
	return false
}

// finish sends what there is, and tells the reader that nothing follows.
func (l *lane[T]) finish(ctx context.Context) error {
	if err := l.send(ctx, true); err != nil {
		return err
	}
	if l.open { // and nothing is in it
		_ = l.w.Free(l.block)
		l.open = false
	}
	_, err := l.w.end.finish(ctx)
	l.over = l.over || err == nil
	return l.w.end.fail("Finish", err)
}
