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

// arrived is the block that Pull takes records from.
type arrived[T any] struct {
	block rpipe.Block[T]
	next  int
	from  int
	some  bool
}

// Pull returns the next record and the rank that pushed it, waiting for one. Records
// of one rank come in order; among ranks blocks come in turn. io.EOF: all ranks have
// finished, and all was pulled. An error with a rank is of that rank alone, as
// fan.In.Read has it; -1: it is of the call. Kind: as Reader.Read's.
func (c *Conveyor[T]) Pull(ctx context.Context) (record T, from int, err error) {
	for !c.current.some || c.current.next == c.current.block.Len() {
		if err := c.turn(); err != nil {
			return record, c.current.from, err
		}
		b, from, err := c.in.Read(ctx)
		if err != nil {
			return record, from, err
		}
		c.current = arrived[T]{block: b, from: from, some: true}
	}
	return c.take()
}

// TryPull returns the next record as Pull does, without waiting for it. ErrWouldBlock,
// with rank -1: no record has arrived. Kind: as Pull's.
func (c *Conveyor[T]) TryPull() (record T, from int, err error) {
	for !c.current.some || c.current.next == c.current.block.Len() {
		if err := c.turn(); err != nil {
			return record, c.current.from, err
		}
		b, from, err := c.in.TryRead()
		if err != nil {
			return record, from, err
		}
		c.current = arrived[T]{block: b, from: from, some: true}
	}
	return c.take()
}

// take returns the next record of the block.
func (c *Conveyor[T]) take() (record T, from int, err error) {
	if c.closed.Load() {
		return record, -1, fmt.Errorf("Pull: %w", pipe.ErrSelfClosed)
	}
	record = c.current.block.Mem()[c.current.next]
	c.current.next++
	c.count.pulled.Add(1)
	return record, c.current.from, nil
}

// turn frees the block whose records were all taken.
func (c *Conveyor[T]) turn() error {
	if !c.current.some {
		return nil
	}
	c.current.some = false
	return c.in.Free(c.current.block)
}

// A Record is one that was pulled, with the rank that pushed it.
type Record[T any] struct {
	Value T
	From  int
}

// All pulls until all ranks have finished, which ends the loop without an error. An
// error of one rank does not end it, any other does. Kind: as Pull's.
func (c *Conveyor[T]) All(ctx context.Context) iter.Seq2[Record[T], error] {
	return func(yield func(Record[T], error) bool) {
		for {
			v, from, err := c.Pull(ctx)
			if errors.Is(err, io.EOF) || !yield(Record[T]{v, from}, err) || err != nil && from < 0 {
				return
			}
		}
	}
}
