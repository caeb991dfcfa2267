// Package netpipe offers connections and listeners of package net between ranks, over
// pipes: net/http and other users of net.Conn run between ranks.
//
//	l, err := netpipe.Listen(ctx, world)        c, err := netpipe.Dial(ctx, world, 0)
//	err = http.Serve(l, handler)                 _, err = c.Write(request)
//
// OpenConn opens one connection between two ranks that both know of it. Dial and Listen
// make as many as a program wants.
package netpipe

import "github.com/gopgas/gopgas/rpipe"

// An Option adjusts connections as they are opened. Both ends give the same.
type Option func(*config)

type config struct {
	name        string
	width, heap int
	pull        bool
	pool        *rpipe.WindowPool
}

// DefaultHeap is the heap of each of a connection's two pipes, unless WithHeap says
// otherwise: the bytes that may be written and not yet read.
const DefaultHeap = 256 << 10

// WithName names the connections. Both ends give the same name. Without it the name is
// "net".
func WithName(name string) Option { return func(c *config) { c.name = name } }

// WithWidth sets how many blocks may be written and not yet read, each way. Without it
// that is rpipe.DefaultWidth.
func WithWidth(n int) Option { return func(c *config) { c.width = n } }

// WithHeap sets how many bytes may be written and not yet read, each way: a multiple of
// 64. A Write is cut into blocks of up to a quarter of that.
func WithHeap(bytes int) Option { return func(c *config) { c.heap = bytes } }

// WithPull leaves bytes at the end that writes until the end that reads fetches them.
func WithPull() Option { return func(c *config) { c.pull = true } }

// WithWindow has the connections run over a window; each takes two ends of it. With nil
// it is as without.
func WithWindow(pool *rpipe.WindowPool) Option { return func(c *config) { c.pool = pool } }

func collect(opts []Option) *config {
	c := &config{name: "net", width: rpipe.DefaultWidth, heap: DefaultHeap}
	for _, opt := range opts {
		opt(c)
	}
	return c
}

// pipes returns the options of a connection's pipes.
func (c *config) pipes() []rpipe.Option {
	opts := []rpipe.Option{rpipe.WithWidth(c.width), rpipe.WithHeap(c.heap), rpipe.WithWindow(c.pool)}
	if c.pull {
		opts = append(opts, rpipe.WithPull())
	}
	return opts
}
