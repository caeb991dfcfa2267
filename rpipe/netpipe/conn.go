package netpipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// A Conn implements net.Conn between two ranks by a pipe of bytes each way.
//
//	Write -> blocks of up to a quarter of the heap -> Read
//	Read  <-                                       <- Write
//
// Any goroutine may call all methods. Calls of Read take turns, and so do calls of
// Write, each of which stays in one piece. Errors are of type *net.OpError. They match
// the errors of package rpipe, such as runtime.ErrRankDead. After a deadline they match
// os.ErrDeadlineExceeded.
type Conn struct {
	in, out       half
	reader        *rpipe.Reader[byte]
	writer        *rpipe.Writer[byte]
	block         rpipe.Block[byte] // under in's turn: it was read, and rest is left of it
	rest          []byte
	part          int // bytes that Write puts in one block
	local, remote RankAddr
}

// OpenConn opens this rank's end of a connection with another rank of t. The peer opens
// its end by the same call: this rank's k-th call of a name meets the peer's k-th.
// OpenConn does not wait for the peer; Read and Write do. A rank reaches itself by
// Listen and Dial only. Kind: local.
func OpenConn(ctx context.Context, t *runtime.Team, peer int, opts ...Option) (*Conn, error) {
	if peer == t.Rank() {
		return nil, failed("OpenConn", t, peer, errSelf)
	}
	with, err := collect(opts)
	if err != nil {
		return nil, failed("OpenConn", t, peer, err)
	}
	return openConn(ctx, t, peer, route{"/conn", "/conn"}, with)
}

// A route holds the endings of the names of a connection's pipes.
type route struct{ out, in string }

// back returns the route as the other end has it.
func (r route) back() route { return route{r.in, r.out} }

// openConn opens the two pipes of a connection. way holds their names.
func openConn(ctx context.Context, t *runtime.Team, peer int, way route, with *config) (*Conn, error) {
	w, r, err := rpipe.OpenDuplex[byte](ctx, t, peer, with.name+way.out, with.name+way.in, with.pipes...)
	if err != nil {
		return nil, err
	}
	c := &Conn{reader: r, writer: w, part: with.part, local: RankAddr{t.Name(), t.Rank()}, remote: RankAddr{t.Name(), peer}}
	c.in.init()
	c.out.init()
	return c, nil
}

// Read waits until bytes have arrived. It returns bytes of one Write, or of a part of
// it, and at most as many as p holds. io.EOF: the peer writes no more, and this end has
// read all bytes. Kind: as Reader's Read.
func (c *Conn) Read(p []byte) (n int, err error) {
	ctx, err := c.in.begin()
	if err != nil {
		return 0, c.failed("read", err)
	}
	defer c.in.turn.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	for len(c.rest) == 0 {
		if c.block, err = c.reader.Read(ctx); err != nil {
			return 0, c.failed("read", err)
		}
		if c.rest = c.block.Mem(); len(c.rest) == 0 {
			err = c.reader.Free(c.block)
		}
	}
	n = copy(p, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		err = c.reader.Free(c.block)
	}
	return n, c.failed("read", err)
}

// Write sends p, and waits while the peer's memory is full. n counts the bytes that
// have left. The peer may not have read them yet. The caller may change p when Write
// returns. Kind: as Writer's Send.
func (c *Conn) Write(p []byte) (n int, err error) {
	ctx, err := c.out.begin()
	if err != nil {
		return 0, c.failed("write", err)
	}
	defer c.out.turn.Unlock()
	for n < len(p) {
		part := p[n:min(n+c.part, len(p))]
		if err := c.writer.Send(ctx, part); err != nil {
			return n, c.failed("write", err)
		}
		n += len(part)
	}
	return n, nil
}

// Close ends the connection at this end. Calls under way end with net.ErrClosed, and Close
// waits until they have. The peer reads all written bytes, and then io.EOF; its Writes fail.
// The pipes' memory comes back after Close has returned: when the peer has read all bytes,
// has closed as well, or is gone. Kind: one-sided; does not wait for the peer.
func (c *Conn) Close() error {
	_ = c.CloseWrite()
	c.in.close(func() { go discard(c.reader.Close) })
	return nil
}

// CloseWrite ends the direction away from this end, as Close does; Read goes on.
// Kind: one-sided; does not wait for the peer.
func (c *Conn) CloseWrite() error {
	c.out.close(func() {
		_ = c.writer.CloseWrite(pipe.NoWait()) // the goroutine tells a reader that this cannot
		go discard(c.writer.Close)
	})
	return nil
}

// discard runs end, which may wait for the peer. No caller is left to take the error.
func discard(end func(ctx context.Context) error) { _ = end(context.Background()) }

// LocalAddr returns a RankAddr. Kind: local.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns a RankAddr. Kind: local.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline calls SetReadDeadline, and SetWriteDeadline unless that direction is closed. Kind:
// local.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.out.setDeadline(t)
	return c.SetReadDeadline(t)
}

// SetReadDeadline has Reads end with os.ErrDeadlineExceeded from t on, waiting ones included.
// The zero time removes the deadline. After Close: net.ErrClosed. Kind: local.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.failed("set", c.in.setDeadline(t)) }

// SetWriteDeadline does for Writes what SetReadDeadline does for Reads. Kind: local.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.failed("set", c.out.setDeadline(t)) }

// failed wraps an error as package net does.
func (c *Conn) failed(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: network, Source: c.local, Addr: c.remote, Err: plain(err)}
}

// plain returns the errors that net.OpError knows as they are.
func plain(err error) error {
	for _, known := range []error{os.ErrDeadlineExceeded, net.ErrClosed} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

const network = "rpipe"

// A RankAddr names a rank as an address, such as "world/2".
type RankAddr struct {
	Team string
	Rank int // in the team
}

// Network returns "rpipe". Kind: local.
func (RankAddr) Network() string { return network }

// String returns the team's name and the rank. Kind: local.
func (a RankAddr) String() string { return fmt.Sprintf("%s/%d", a.Team, a.Rank) }
