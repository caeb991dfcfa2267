// Package netpipe offers connections and listeners of package net between ranks, over
// pipes: net/http and other users of net.Conn run between ranks.
//
//	l, err := netpipe.Listen(ctx, world)        c, err := netpipe.Dial(ctx, world, 0)
//	err = http.Serve(l, handler)                 _, err = c.Write(request)
//
// OpenConn opens one connection between two ranks that both know of it. Dial and Listen
// make as many as a program wants.
package netpipe

import (
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// An Option adjusts connections as they are opened. Both ends give the same: else a call of either end
// returns runtime.ErrMismatch. A number out of an option's bounds is runtime.ErrRange when the end is opened.
type Option pipe.Option

// DefaultHeap is the heap of each of a connection's two pipes, unless WithHeap says
// otherwise: the bytes that may be written and not yet read.
const DefaultHeap = 256 << 10

// WithName names the connections. Dial reaches the listener of the same name. Without it the name is
// "net".
func WithName(name string) Option { return Option(rpipe.WithName(name)) }

// WithWidth sets how many blocks may be written and not yet read, each way: from 1 to 2^20. Without it
// that is rpipe.DefaultWidth.
func WithWidth(n int) Option { return Option(rpipe.WithWidth(n)) }

// WithHeap sets how many bytes may be written and not yet read, each way: a multiple of 64 up to 1 GiB.
// Without it that is DefaultHeap. A Write is cut into blocks of up to a quarter of that.
func WithHeap(bytes int) Option { return Option(rpipe.WithHeap(bytes)) }

// WithPull leaves bytes at the end that writes until the end that reads fetches them. Without it the
// end that writes puts them into memory of the other end.
func WithPull() Option { return Option(rpipe.WithPull()) }

// WithWindow has the connections run over a window; each takes two ends of it. With nil it is as
// without. Errors are those of rpipe.WithWindow.
func WithWindow(pool *rpipe.WindowPool) Option { return Option(rpipe.WithWindow(pool)) }

// A config holds the options of a connection's pipes, and what the connection needs of them.
type config struct {
	pipes []rpipe.Option
	name  string
	part  int // bytes that Write puts in one block
}

// collect applies options to the defaults of a connection.
func collect(opts []Option) (*config, error) {
	pipes := pipe.Unwrap(opts, rpipe.WithName("net"), rpipe.WithHeap(DefaultHeap))
	o, err := pipe.Collect(pipes)
	return &config{pipes: pipes, name: o.Name, part: max(o.Heap/4, 1)}, err
}
