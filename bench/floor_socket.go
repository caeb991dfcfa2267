//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"net"
)

// roundTrip sends request bytes from rank 0 to the target and reply bytes back,
// over a socket of their own.
func roundTrip(ctx context.Context, h *harness, request, reply int) (task, error) {
	s, err := h.dial(ctx)
	if err != nil {
		return task{}, err
	}
	out, in := make([]byte, request), make([]byte, reply)
	if h.rank == target {
		out, in = in, out
	}
	send := func(context.Context, int) error {
		rewrite(out)
		_, err := s.conn.Write(out)
		return err
	}
	var sum byte
	receive := func(context.Context) error {
		err := s.read(in)
		sum += read(in)
		return err
	}
	return task{run: h.pingPong(send, receive), free: s.close}, nil
}

// socketStream sends messages one after another, one way. At the end of each
// batch the receiver sends one byte back: all have come.
func socketStream(ctx context.Context, h *harness, size int, fromOrigin bool) (task, error) {
	s, err := h.dial(ctx)
	if err != nil {
		return task{}, err
	}
	buf, ack := make([]byte, size), make([]byte, 1)
	sender := 0
	if !fromOrigin {
		sender = target
	}
	run := func(_ context.Context, n int) error {
		if h.rank == sender {
			return errors.Join(s.repeat(n, buf), s.read(ack))
		}
		for range n {
			if err := s.read(buf); err != nil {
				return err
			}
		}
		return s.repeat(1, ack)
	}
	if h.rank > target {
		run = func(context.Context, int) error { return nil }
	}
	return task{batch: h.window, each: h.window, prepare: h.renew(buf, buf), run: run, free: s.close}, nil
}

// A socket joins rank 0 and the target. Further ranks have none.
type socket struct {
	conn *net.TCPConn
	poll *poller
	stop func() bool
}

// dial connects the two. Kind: collective.
func (h *harness) dial(ctx context.Context) (*socket, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	var listener net.Listener
	var address string
	if h.rank == target {
		var err error
		if listener, err = config.Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
		defer listener.Close()
		address = listener.Addr().String()
	}
	all, err := h.world.Exchange(ctx, []byte(address))
	if err != nil || h.rank > target {
		return &socket{}, err
	}
	var conn net.Conn
	if h.rank == target {
		defer context.AfterFunc(ctx, func() { listener.Close() })()
		conn, err = listener.Accept()
	} else {
		var dialer net.Dialer
		dialer.SetMultipathTCP(false)
		conn, err = dialer.DialContext(ctx, "tcp", string(all[target]))
	}
	if err != nil {
		return nil, err
	}
	s := &socket{conn: conn.(*net.TCPConn)}
	s.stop = context.AfterFunc(ctx, func() { conn.Close() })
	s.poll, err = newPoller(s.conn)
	return s, err
}

// read fills buf from the socket. It polls, as the fabric does, before it sleeps.
func (s *socket) read(buf []byte) error {
	for len(buf) > 0 {
		n, err := s.poll.read(buf)
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		buf = buf[n:]
	}
	return nil
}

// repeat writes buf n times.
func (s *socket) repeat(n int, buf []byte) error {
	for range n {
		if _, err := s.conn.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

// close ends the connection and the goroutine at its other end.
func (s *socket) close(context.Context) error {
	if s.conn == nil {
		return nil
	}
	s.stop()
	return s.conn.Close()
}
