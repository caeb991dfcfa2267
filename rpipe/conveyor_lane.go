package rpipe

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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
	sealed bool          // the block was shrunk to what it holds, and waits to be written
	inTime atomic.Uint64 // blocks that left since their time was up
}

// space returns room for n elements at the end of the block, of which the caller
// fills the first n. With wait it waits for a block, else it is ErrWouldBlock.
func (l *lane[T]) space(ctx context.Context, n int, wait bool) ([]T, error) {
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
	if n = max(n, l.batch); wait {
		l.block, err = l.w.Alloc(ctx, n)
	} else {
		l.block, err = l.w.TryAlloc(n)
	}
	l.open = err == nil
	return err
}

// commit keeps n elements that were filled, and reports whether the block is full.
func (l *lane[T]) commit(n int) (full bool) {
	l.filled += n
	return l.filled == l.block.Len()
}

// send writes the block, if it holds anything. Without wait it is ErrWouldBlock while as
// many blocks as the pipe is wide are not read yet.
func (l *lane[T]) send(ctx context.Context, wait bool) error {
	if !l.open || l.filled == 0 {
		return nil
	}
	if !wait {
		if err := l.w.end().WidthNow(); err != nil {
			return l.w.end().Fail("Write", err)
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
		return err
	}
	l.open, l.sealed, l.filled = false, false, 0
	return nil
}

// late sends what has waited long enough. It reports whether this must be tried again.
func (l *lane[T]) late(noWait context.Context) (again bool) {
	if !l.mu.TryLock() {
		return true // the goroutine that fills the block may wait for room
	}
	defer l.mu.Unlock()
	had := l.filled
	if err := l.send(noWait, false); err != nil {
		return errors.Is(err, ErrWouldBlock) // anything else the next push meets, too
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
	return l.w.CloseWrite(ctx)
}
