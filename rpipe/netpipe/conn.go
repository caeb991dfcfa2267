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
	"github.com/gopgas/gopgas/runtime"
)

// A Conn is a net.Conn between two ranks: a pipe of bytes each way.
//
//	Write -> blocks of up to a quarter of the heap -> Read
//	Read  <-                                       <- Write
//
// All methods may be called by any goroutine. Calls of Read take turns, and so do
// calls of Write, each of which stays in one piece. Errors are of type
// *net.OpError; what became of the other rank can be matched in them as in those of
// package rpipe, and a deadline that has passed is os.ErrDeadlineExceeded.
type Conn struct {
	in, out       half
	reader        *rpipe.Reader[byte]
	writer        *rpipe.Writer[byte]
	block         rpipe.Block[byte] // under in's turn: it was read, and rest is left of it
	rest          []byte
	part          int // bytes that Write puts in one block
	local, remote RankAddr
}

// OpenConn opens this rank's end of a connection with another rank of t, which
// opens the other one by the same call: the k-th of a name here meets the k-th
// there. It does not wait for that; Read and Write do. A rank reaches itself by
// Listen and Dial only. Kind: local.
func OpenConn(ctx context.Context, t *runtime.Team, peer int, opts ...Option) (*Conn, error) {
	if peer == t.Rank() {
		return nil, failed("OpenConn", t, peer, errSelf)
	}
	return openConn(ctx, t, peer, route{"/conn", "/conn"}, collect(opts))
}

// A route is what the names of a connection's pipes end with.
type route struct{ out, in string }

func (r route) back() route { return route{r.in, r.out} }

func openConn(ctx context.Context, t *runtime.Team, peer int, way route, with *config) (*Conn, error) {
	w, r, err := rpipe.OpenDuplex[byte](ctx, t, peer, with.name+way.out, with.name+way.in, with.pipes()...)
	if err != nil {
		return nil, err
	}
	c := &Conn{reader: r, writer: w, part: max(with.heap/4, 1), local: RankAddr{t.Name(), t.Rank()}, remote: RankAddr{t.Name(), peer}}
	c.in.init()
	c.out.init()
	return c, nil
}

// Read waits until bytes have arrived and returns those of one Write, or of a
// part of it, or as many of them as p holds. io.EOF: the other end writes no
// more, and all was read. Kind: as Reader's Read.
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

// Write sends p, waiting while the other end's memory is full. n tells how much
// has left, which the other end may not have read yet. p is the caller's when it
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

// Close ends the connection at this end. Calls under way end with net.ErrClosed.
// The other end reads what was written, and then io.EOF; its Writes fail. That
// goes on behind the call, and the pipes' memory comes back when the other end
// has read everything, or closed as well, or is gone. Kind: one-sided; waits for
// nobody.
func (c *Conn) Close() error {
	_ = c.CloseWrite()
	c.in.close(func() {
		_ = c.reader.Close(context.Background()) // there is nobody to tell
	})
	return nil
}

// CloseWrite ends the direction away from this end, as Close does; Read goes on.
// Kind: one-sided; waits for nobody.
func (c *Conn) CloseWrite() error {
	c.out.close(func() {
		_ = c.writer.Close(context.Background()) // there is nobody to tell
	})
	return nil
}

// LocalAddr returns a RankAddr.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns a RankAddr.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline is SetReadDeadline, and SetWriteDeadline unless that direction is
// closed.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.out.limit.set(t)
	return c.SetReadDeadline(t)
}

// SetReadDeadline has Reads end with os.ErrDeadlineExceeded from t on, those that
// wait by then as well. The zero time is no deadline. After Close: net.ErrClosed.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.failed("set", c.in.limit.set(t)) }

// SetWriteDeadline is SetReadDeadline for Writes.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.failed("set", c.out.limit.set(t)) }

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

// A RankAddr is a rank's address, such as "world/2".
type RankAddr struct {
	Team string
	Rank int // in the team
}

// Network returns "rpipe".
func (RankAddr) Network() string { return network }

// String is the team's name and the rank.
func (a RankAddr) String() string { return fmt.Sprintf("%s/%d", a.Team, a.Rank) }
