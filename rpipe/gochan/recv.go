package gochan

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/rpipe/internal/turn"
	"github.com/gopgas/gopgas/runtime"
)

// A Receiver receives the values of a channel between two ranks. Any goroutine may call
// all methods. Calls that receive take turns, and each value is received once.
type Receiver[T any] struct {
	turn   turn.Turn // of the goroutine that receives
	r      *rpipe.Reader[T]
	end    *pipe.End // of r
	values []T       // of the block that was read last, copied: Close gives its memory away
	rest   []T       // of them, not yet received
	closed atomic.Bool
}

// OpenReceiver opens this rank's end of a channel from another rank of t. That rank
// opens the sender's end by OpenSender with the same options. OpenReceiver does not
// wait for the sender. Kind: local.
func OpenReceiver[T any](ctx context.Context, t *runtime.Team, sender int, opts ...Option) (*Receiver[T], error) {
	r, err := rpipe.OpenReader[T](ctx, t, sender, pipeOptions(opts)...)
	if err != nil {
		return nil, err
	}
	return &Receiver[T]{turn: turn.New(), r: r, end: (*pipe.TypedReader[T])(r).End().End}, nil
}

// Recv waits for the next value and returns it. io.EOF: the sender has closed, and the
// receiver has received all values. Kind: as Reader's Read.
func (c *Receiver[T]) Recv(ctx context.Context) (v T, err error) {
	ctx = wait.Context(ctx)
	if err := c.turn.Take(ctx); err != nil {
		return v, c.end.Fail("Recv", err)
	}
	defer c.turn.Give()
	return c.next("Recv", func() (rpipe.Block[T], error) { return c.r.Read(ctx) })
}

// TryRecv returns the next value without waiting for it. ErrWouldBlock: no value has
// arrived, or another goroutine is receiving. Kind: as Reader's Read.
func (c *Receiver[T]) TryRecv() (v T, err error) {
	if !c.turn.Try() {
		return v, rpipe.ErrWouldBlock
	}
	defer c.turn.Give()
	return c.next("TryRecv", c.r.TryRead)
}

// next returns the next value, and reads a block if there is none. It copies the block's values. A Free
// that fails says that Close may have given the block's memory away meanwhile: then the copy means
// nothing. Called in the turn.
func (c *Receiver[T]) next(op string, read func() (rpipe.Block[T], error)) (v T, err error) {
	for len(c.rest) == 0 {
		b, err := read()
		if err != nil {
			return v, err
		}
		c.values = append(c.values[:0], b.Mem()...)
		if err := c.r.Free(b); err != nil {
			return v, err
		}
		c.rest = c.values
	}
	if c.closed.Load() {
		return v, c.end.Fail(op, pipe.ErrSelfClosed)
	}
	v, c.rest = c.rest[0], c.rest[1:]
	return v, nil
}

// All receives until the end of the channel, which ends the loop without an
// error:
//
//	for v, err := range c.All(ctx) { ... }
//
// After an error the loop ends. Kind: as Recv's.
func (c *Receiver[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			v, err := c.Recv(ctx)
			if errors.Is(err, io.EOF) || !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Arrivals returns a channel for select, as Reader's Arrivals does. A value says
// that TryRecv may find some: call it until it returns ErrWouldBlock. The first call
// waits for its turn among calls that receive.
func (c *Receiver[T]) Arrivals() <-chan struct{} {
	_ = c.turn.Take(context.Background())
	defer c.turn.Give()
	return c.r.Arrivals()
}

// Close ends the channel at this end. Values that were not received are lost, and
// the sender learns that. The second call does nothing. Kind: one-sided.
func (c *Receiver[T]) Close(ctx context.Context) error {
	c.closed.Store(true)
	return c.r.Close(ctx)
}
