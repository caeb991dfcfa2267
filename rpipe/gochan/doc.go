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
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// An Option adjusts a channel as it is opened. Both ends give the same: else a call of either end returns
// runtime.ErrMismatch. A number out of an option's bounds is runtime.ErrRange when the end is opened.
type Option pipe.Option

// WithName names the channel. Without it the name is "channel".
func WithName(name string) Option { return Option(rpipe.WithName(name)) }

// WithWidth sets how many blocks of values may be sent and not yet received, from 1 to 2^20, and so how
// far the sender gets ahead. Without it that is rpipe.DefaultWidth.
func WithWidth(n int) Option { return Option(rpipe.WithWidth(n)) }

// WithHeap sets the bytes that values on their way may occupy, a multiple of 64 up to 1 GiB. Without it
// that is rpipe.DefaultHeap.
func WithHeap(bytes int) Option { return Option(rpipe.WithHeap(bytes)) }

// WithPull leaves values at the sender until the receiver fetches them. Without it the sender puts them
// into the receiver's memory.
func WithPull() Option { return Option(rpipe.WithPull()) }

// WithWindow has the channel run over a window, of which it takes one end at each rank. With nil it is as
// without. Errors are those of rpipe.WithWindow.
func WithWindow(pool *rpipe.WindowPool) Option { return Option(rpipe.WithWindow(pool)) }

// pipeOptions returns the options of the channel's pipe.
func pipeOptions(opts []Option) []rpipe.Option {
	return pipe.Unwrap(opts, rpipe.WithName("channel"))
}
