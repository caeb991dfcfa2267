// Package batch gathers small records for one rank in blocks of a pipe: the common part of
// conveyors and of active messages.
package batch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/rpipe"
)

// A Batch gathers elements for one rank in a block, which leaves when it is full, when
// the clock's time is up, or by hand. The caller holds the Batch in each call but Late.
type Batch[T any] struct {
	sync.Mutex // the clock calls Late from another goroutine
	Writer     *rpipe.Writer[T]
	least      int // elements of a block

	block  rpipe.Block[T]
	filled int
	open   bool
	late   atomic.Uint64 // blocks that Late sent
}

// Init sets the pipe and the number of elements that a block has at least.
func (b *Batch[T]) Init(w *rpipe.Writer[T], least int) { b.Writer, b.least = w, max(1, least) }

// Space returns room for n elements at the end of the block. The caller fills it. With
// wait Space waits for a block, else it returns ErrWouldBlock.
func (b *Batch[T]) Space(ctx context.Context, n int, wait bool) ([]T, error) {
	if b.open && b.filled+n > b.block.Len() {
		if err := b.Send(ctx, wait); err != nil {
			return nil, err
		}
	}
	if !b.open {
		if err := b.begin(ctx, n, wait); err != nil {
			return nil, err
		}
	}
	return b.block.Mem()[b.filled : b.filled+n : b.filled+n], nil
}

// begin allocates a block.
func (b *Batch[T]) begin(ctx context.Context, n int, wait bool) (err error) {
	if n = max(n, b.least); wait {
		b.block, err = b.Writer.Alloc(ctx, n)
	} else {
		b.block, err = b.Writer.TryAlloc(n)
	}
	b.open = err == nil
	return err
}

// Commit keeps n elements that the caller filled. It reports whether the block is full.
func (b *Batch[T]) Commit(n int) (full bool) {
	b.filled += n
	return b.filled == b.block.Len()
}

// Filled returns the number of elements that have not left.
func (b *Batch[T]) Filled() int { return b.filled }

// Send writes the block, if it holds anything. Without wait it returns ErrWouldBlock while
// the reader has not read as many blocks as the pipe is wide.
func (b *Batch[T]) Send(ctx context.Context, wait bool) error {
	if !b.open || b.filled == 0 {
		return nil
	}
	if err := b.write(ctx, wait); err != nil {
		return err
	}
	b.open, b.filled = false, 0
	return nil
}

func (b *Batch[T]) write(ctx context.Context, wait bool) error {
	full := b.filled == b.block.Len()
	switch {
	case full && wait:
		return b.Writer.Write(ctx, b.block)
	case full:
		return b.Writer.TryWrite(b.block)
	case wait:
		return b.Writer.WriteFirst(ctx, b.block, b.filled)
	}
	return b.Writer.TryWriteFirst(b.block, b.filled)
}

// Late sends the block because its time is up. It reports whether the clock must call it
// again. It takes the lock itself.
func (b *Batch[T]) Late() (again bool) {
	if !b.TryLock() {
		return true // the goroutine that fills the block may wait for room
	}
	defer b.Unlock()
	had := b.filled
	if err := b.Send(context.Background(), false); err != nil {
		return errors.Is(err, rpipe.ErrWouldBlock) // the next caller meets any other error
	}
	if had > 0 {
		b.late.Add(1)
	}
	return false
}

// SentLate returns the number of blocks that Late sent.
func (b *Batch[T]) SentLate() uint64 { return b.late.Load() }

// Finish sends the block, and tells the reader that nothing follows.
func (b *Batch[T]) Finish(ctx context.Context) error {
	if err := b.Send(ctx, true); err != nil {
		return err
	}
	if b.open { // and empty
		_ = b.Writer.Free(b.block)
		b.open = false
	}
	return b.Writer.CloseWrite(ctx)
}
