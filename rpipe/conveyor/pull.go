package conveyor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// current is the block from which Pull takes records.
type current[T any] struct {
	block rpipe.Block[T]
	from  int
	next  int  // record of block
	held  bool // the block is not freed
}

// Pull returns a copy of the next record and the rank that pushed it. It waits for a
// record. Records of one rank come in the order of Push; Pull takes blocks of all ranks
// in turn.
//
// ErrPhaseOver, with rank -1: all ranks have ended the phase, and this rank has pulled its
// records. The next Pull returns records of the next phase. io.EOF: all ranks have
// finished, and this rank has pulled all records. An error with a rank concerns that rank alone, as runtime.ErrRankDead does: the next Pull goes on with
// the rest. An error with rank -1 concerns the call, such as the end of ctx. Kind: as
// rpipe.Reader.Read's.
func (c *Conveyor[T]) Pull(ctx context.Context) (record T, from int, err error) {
	return c.pull(ctx, true)
}

// TryPull returns the next record as Pull does, without waiting for it. ErrWouldBlock,
// with rank -1: no record has arrived. Kind: as Pull's.
func (c *Conveyor[T]) TryPull() (record T, from int, err error) {
	return c.pull(context.Background(), false)
}

// pull returns the next record of the current block, and takes the next block when that is empty. It
// frees a block when it has returned all its records.
func (c *Conveyor[T]) pull(ctx context.Context, wait bool) (record T, from int, err error) {
	k := &c.current
	for !k.held || k.next == k.block.Len() {
		if err := c.free(); err != nil {
			return record, k.from, err
		}
		b, err := c.nextBlock(ctx, wait)
		if err != nil {
			return record, b.From, err
		}
		*k = current[T]{block: b.Block, from: b.From, held: true}
	}
	if c.closed.Load() {
		return record, -1, fmt.Errorf("Pull: %w", pipe.ErrSelfClosed)
	}
	record = k.block.Mem()[k.next]
	k.next++
	c.pulled.Add(1)
	return record, k.from, nil
}

// free frees the current block.
func (c *Conveyor[T]) free() error {
	if !c.current.held {
		return nil
	}
	c.current.held = false
	return c.in.Free(c.current.block)
}

// A Record is a pulled record with the rank that pushed it.
type Record[T any] struct {
	Value T
	From  int
}

// All pulls until all ranks have ended the phase, or have finished. Both end the loop
// without an error. An error of one rank does not end the loop: its Record holds that
// rank. Any other error ends it.
// Kind: as Pull's.
func (c *Conveyor[T]) All(ctx context.Context) iter.Seq2[Record[T], error] {
	return func(yield func(Record[T], error) bool) {
		for {
			v, from, err := c.Pull(ctx)
			if errors.Is(err, io.EOF) || errors.Is(err, ErrPhaseOver) || !yield(Record[T]{v, from}, err) || err != nil && from < 0 {
				return
			}
		}
	}
}
