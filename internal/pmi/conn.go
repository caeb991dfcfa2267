package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// A conn carries messages of one version over a connection.
type conn struct {
	net.Conn
	r      *bufio.Reader
	framed bool // version 2, after init
}

func newConn(c net.Conn) *conn { return &conn{Conn: c, r: bufio.NewReaderSize(c, MaxMessage)} }

// send writes a message in the format of the version on which the two ends agreed.
func (c *conn) send(m message) error {
	encode := m.line
	if c.framed {
		encode = m.frame
	}
	b, err := encode()
	if err != nil {
		return err
	}
	_, err = c.Write(b)
	return err
}

// receive reads one message, in the form of the connection.
func (c *conn) receive() (message, error) {
	if c.framed {
		return readFrame(c.r)
	}
	return readLine(c.r)
}

// request sends a message and returns the response, which has another command. The end of
// ctx makes the connection useless.
func (c *conn) request(ctx context.Context, m message, response string) (got message, err error) {
	err = c.within(ctx, func() error {
		if err := c.send(m); err != nil {
			return err
		}
		got, err = c.receive()
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return got, err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		return got, fmt.Errorf("%w instead of a response to %s", ErrLost, m.command)
	case err != nil:
		return got, fmt.Errorf("%s: %w", m.command, err)
	case got.command != response:
		return got, wrong("%s in got to %s", got.command, m.command)
	}
	if code := got.get("rc"); code != "" && code != "0" {
		reason := got.get("msg")
		if reason == "" {
			reason = got.get("errmsg")
		}
		return got, &RefusedError{Command: m.command, Code: code, Reason: reason}
	}
	return got, nil
}

// within calls do, which uses the connection. It returns the cause of the end of ctx if that
// ends do.
func (c *conn) within(ctx context.Context, do func() error) error {
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) }) //nolint:errcheck // a closed connection shows in do
	defer stop()
	err := do()
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
