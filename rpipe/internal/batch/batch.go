// Package batch gathers small elements for each rank of a team in blocks of pipes. It is
// the common part of conveyors and of active messages.
//
//	Batches   [r r r r . .]  Batch for rank 0  --- block --->  pipe to rank 0
//	          [r r . . . .]  Batch for rank 1  --- block --->  pipe to rank 1
//
// A block leaves when it is full, when the clock's bound is over, or by Flush.
package batch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/turn"
)

// A Batch gathers elements for one rank in a block. The caller holds the Batch in each
// call but late and the counts: by Lock where only the clock can hold it too, by Enter
// where other goroutines send to the rank.
type Batch[T any] struct {
	sync.Mutex // the clock calls late from another goroutine
	Writer     *rpipe.Writer[T]

	turn    turn.Turn
	waiting atomic.Int32 // goroutines in Enter

	block  rpipe.Block[T]
	least  int // elements of a block
	filled int // elements in block
	open   bool
	sent   [causes]atomic.Uint64 // blocks
	marks  uint64                // that have left
}

// A Cause says why a block leaves.
type Cause int

// The causes: no further element fits, the bound of the clock is over, or the caller
// sends it.
const (
	Full Cause = iota
	Late
	ByHand
	causes
)

// Enter holds the Batch after the goroutines that entered it before. It returns the cause
// of ctx's end if that comes first.
func (b *Batch[T]) Enter(ctx context.Context) error {
	if !b.turn.Try() {
		b.waiting.Add(1)
		defer b.waiting.Add(-1)
		if err := b.turn.Take(ctx); err != nil {
			return err
		}
	}
	b.Lock() // the clock waits for nothing while it holds b
	return nil
}

// Leave ends what Enter began.
func (b *Batch[T]) Leave() {
	b.Unlock()
	b.turn.Give()
}

// Contended reports whether another goroutine waits in Enter.
func (b *Batch[T]) Contended() bool { return b.waiting.Load() > 0 }

// Space returns room for n elements at the end of the block. The caller fills it. Space waits
// for a block. Under pipe.NoWait it returns ErrWouldBlock instead.
func (b *Batch[T]) Space(ctx context.Context, n int) ([]T, error) {
	if b.open && b.filled+n > b.block.Len() {
		if err := b.Send(ctx, Full); err != nil {
			return nil, err
		}
	}
	if !b.open {
		if err := b.begin(ctx, n); err != nil {
			return nil, err
		}
	}
	return b.block.Mem()[b.filled : b.filled+n : b.filled+n], nil
}

// begin allocates a block.
func (b *Batch[T]) begin(ctx context.Context, n int) (err error) {
	b.block, err = b.Writer.Alloc(ctx, max(n, b.least))
	b.open = err == nil
	return err
}

// Commit keeps n elements that the caller filled. It reports whether the block is full.
func (b *Batch[T]) Commit(n int) (full bool) {
	b.filled += n
	return b.filled == b.block.Len()
}

// Send writes the block, if it holds an element. Under pipe.NoWait it returns ErrWouldBlock
// while the reader has not read as many blocks as the pipe is wide.
func (b *Batch[T]) Send(ctx context.Context, why Cause) error {
	if b.filled == 0 {
		return nil
	}
	if err := b.write(ctx); err != nil {
		return err
	}
	b.sent[why].Add(1)
	b.open, b.filled = false, 0
	return nil
}

// write writes the filled part of the block.
func (b *Batch[T]) write(ctx context.Context) error {
	if b.filled == b.block.Len() {
		return b.Writer.Write(ctx, b.block)
	}
	return b.Writer.WriteFirst(ctx, b.block, b.filled)
}

// late sends the block because its bound is over. It reports whether the clock must call
// it again. It takes the lock itself.
func (b *Batch[T]) late(now context.Context) (again bool) {
	if !b.TryLock() {
		return true // the goroutine that fills the block may wait for room
	}
	defer b.Unlock()
	err := b.Send(now, Late)
	return errors.Is(err, rpipe.ErrWouldBlock) // the next caller gets any other error
}

// mark sends the block, and an empty block behind it, unless n empty blocks have left.
func (b *Batch[T]) mark(ctx context.Context, n uint64) error {
	if b.marks == n {
		return nil
	}
	err := b.Send(ctx, ByHand)
	if err == nil {
		err = b.Writer.Send(ctx, nil)
	}
	if err == nil {
		b.marks = n
	}
	return err
}

// finish sends the block, and tells the reader that no block follows.
func (b *Batch[T]) finish(ctx context.Context) error {
	if err := b.Send(ctx, ByHand); err != nil {
		return err
	}
	if b.open { // and empty
		_ = b.Writer.Free(b.block)
		b.open = false
	}
	return b.Writer.CloseWrite(ctx)
}
