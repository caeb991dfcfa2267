package rpipe

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/runtime"
)

// A Receiver is the receiving end of a channel of values between two ranks. All
// methods may be called by any goroutine; those that receive take turns, and each
// value is received once.
type Receiver[T any] struct {
	turn  turn
	r     *Reader[T]
	block Block[T] // that was read, if values are left of it
	rest  []T
}

// OpenReceiver opens this rank's end of a channel from another rank of t, which
// opens the other one by OpenSender with the same options. It does not wait for
// that. Kind: local.
func OpenReceiver[T any](ctx context.Context, t *runtime.Team, sender int, opts ...Option) (*Receiver[T], error) {
	r, err := OpenReader[T](ctx, t, sender, channel(opts)...)
	if err != nil {
		return nil, err
	}
	return &Receiver[T]{turn: newTurn(), r: r}, nil
}

// Recv returns the next value, waiting for it. io.EOF: the sender has closed and
// all was received. Kind: as Reader's Read.
func (c *Receiver[T]) Recv(ctx context.Context) (v T, err error) {
	ctx = wait.Context(ctx)
	if err := c.turn.take(ctx); err != nil {
		return v, c.r.end.fail("Recv", err)
	}
	defer c.turn.give()
	if err := c.open(); err != nil {
		return v, c.r.end.fail("Recv", err)
	}
	for len(c.rest) == 0 {
		if c.block, err = c.r.Read(ctx); err != nil {
			return v, err
		}
		if err := c.opened(); err != nil {
			return v, err
		}
	}
	return c.next()
}

// TryRecv is Recv that does not wait: ok tells whether a value was there. Kind:
// as Reader's Read.
func (c *Receiver[T]) TryRecv() (v T, ok bool, err error) {
	if !c.turn.try() {
		return v, false, nil
	}
	defer c.turn.give()
	if err := c.open(); err != nil {
		return v, false, c.r.end.fail("TryRecv", err)
	}
	for len(c.rest) == 0 {
		if c.block, err = c.r.TryRead(); errors.Is(err, ErrWouldBlock) {
			return v, false, nil
		} else if err != nil {
			return v, false, err
		}
		if err := c.opened(); err != nil {
			return v, false, err
		}
	}
	v, err = c.next()
	return v, err == nil, err
}

// open returns why nothing can be received. Called in one's turn, as the next ones:
// values lie in memory that goes only when Close has had its turn.
func (c *Receiver[T]) open() error {
	if c.r.end.closed.Load() {
		return errSelfClosed
	}
	return nil
}

// opened takes a block's values. There may be none in what others than a Sender
// have written.
func (c *Receiver[T]) opened() error {
	if c.rest = c.block.Mem(); len(c.rest) == 0 {
		return c.r.Free(c.block)
	}
	return nil
}

// next takes a value out of the block.
func (c *Receiver[T]) next() (v T, err error) {
	v = c.rest[0]
	if c.rest = c.rest[1:]; len(c.rest) == 0 {
		err = c.r.Free(c.block)
	}
	return v, err
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
// that TryRecv may find some: call it until it does not. The first call waits for its
// turn among those that receive.
func (c *Receiver[T]) Arrivals() <-chan struct{} {
	_ = c.turn.take(context.Background())
	defer c.turn.give()
	return c.r.Arrivals()
}

// Close ends the channel at this end. Values that were not received are lost, and
// the sender learns that. The second call does nothing. Kind: one-sided.
func (c *Receiver[T]) Close(ctx context.Context) error {
	ctx = wait.Context(ctx)
	end := c.r.end
	if !end.shut() {
		return nil
	}
	_ = c.turn.take(context.Background()) // who has it comes back now
	defer c.turn.give()
	return end.fail("Close", end.depart(ctx))
}
