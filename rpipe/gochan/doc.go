// Package gochan offers channels of values between two ranks, over pipes.
//
//	s, err := gochan.OpenSender[int](ctx, world, 1)     c, err := gochan.OpenReceiver[int](ctx, world, 0)
//	err = s.Send(ctx, 42)                               v, err := c.Recv(ctx)
//	err = s.Close(ctx)                                  for v, err := range c.All(ctx) { ... }
//
// Both ends find each other as the ends of a pipe do: by team, ranks, name and count of
// openings. Both give the same options.
package gochan

import (
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
)

// An Option adjusts a channel as it is opened. Both ends give the same.
type Option func(*config)

type config struct {
	name        string
	width, heap int
	pull        bool
	pool        *rpipe.WindowPool
}

// WithName names the channel. Without it the name is "channel".
func WithName(name string) Option { return func(c *config) { c.name = name } }

// WithWidth sets how many blocks of values may be sent and not yet received, and so how
// far the sender gets ahead. Without it that is rpipe.DefaultWidth.
func WithWidth(n int) Option { return func(c *config) { c.width = n } }

// WithHeap sets the bytes that values on their way may occupy, a multiple of 64. Without
// it that is rpipe.DefaultHeap.
func WithHeap(bytes int) Option { return func(c *config) { c.heap = bytes } }

// WithPull leaves values at the sender until the receiver fetches them.
func WithPull() Option { return func(c *config) { c.pull = true } }

// WithWindow has the channel run over a window. With nil it is as without.
func WithWindow(pool *rpipe.WindowPool) Option { return func(c *config) { c.pool = pool } }

func collect(opts []Option) config {
	c := config{name: "channel", width: rpipe.DefaultWidth, heap: rpipe.DefaultHeap}
	for _, opt := range opts {
		opt(&c)
	}
	return c
}

// pipe returns the options of the channel's pipe.
func (c *config) pipe() []rpipe.Option {
	opts := []rpipe.Option{rpipe.WithName(c.name), rpipe.WithWidth(c.width), rpipe.WithHeap(c.heap), rpipe.WithWindow(c.pool)}
	if c.pull {
		opts = append(opts, rpipe.WithPull())
	}
	return opts
}

var errClosed = fmt.Errorf("%w at this end; open another one", rpipe.ErrClosed)

// An end names one end of a channel in errors.
type end struct {
	name string
	me   int
	peer int
}

func endOf(t *runtime.Team, peer int, name string) end { return end{name, t.Rank(), peer} }

// fail wraps what an operation failed with, unless the pipe has done so.
func (e *end) fail(op string, err error) error {
	if err == nil || errors.Is(err, rpipe.ErrWouldBlock) {
		return err
	}
	var known *rpipe.OpError
	if errors.As(err, &known) {
		return err
	}
	return &rpipe.OpError{Op: op, Pipe: e.name, Rank: e.me, Peer: e.peer, Err: err}
}
