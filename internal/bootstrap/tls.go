package bootstrap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/gopgas/gopgas/internal/identity"
)

// tlsHandshake is the first byte of a TLS connection. No hello begins with it.
const tlsHandshake = 22

// encrypt runs the client's side of a TLS handshake on conn. It closes conn if that
// fails.
func encrypt(ctx context.Context, conn net.Conn, secret []byte) (net.Conn, error) {
	config, err := identity.Config(secret, identity.Rendezvous)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%w: %w", ErrArgument, err)
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	c := tls.Client(conn, config)
	if err = c.HandshakeContext(ctx); err == nil {
		return encrypted{c}, nil
	}
	conn.Close()
	if errors.Is(err, identity.ErrStranger) {
		return nil, fmt.Errorf("%w; TLS with %v: %w", ErrHandshake, conn.RemoteAddr(), err)
	}
	return nil, fmt.Errorf("%w: TLS with %v: %w", errNoChallenge, conn.RemoteAddr(), err)
}

// decrypt runs the server's side of a TLS handshake if the client begins one. Else it
// returns a begun connection.
func (s *Server) decrypt(conn net.Conn) (net.Conn, error) {
	c := &begun{Conn: conn}
	if _, err := io.ReadFull(conn, c.first[:]); err != nil {
		return nil, err
	}
	if c.first[0] != tlsHandshake {
		return c, nil
	}
	config, err := s.identity()
	if err != nil {
		return nil, err
	}
	secure := tls.Server(c, config)
	return encrypted{secure}, secure.Handshake()
}

// encrypted is a connection that closes at once. Close of a tls.Conn writes an alert, for which
// it waits five seconds while the socket is full. A goodbye ends the messages of a rank, so that
// the alert says nothing more.
type encrypted struct{ *tls.Conn }

func (c encrypted) Close() error { return c.NetConn().Close() }

// begun is a connection whose first byte was read and is to be read once more.
type begun struct {
	net.Conn
	first [1]byte
	again bool // the first byte was read once more
}

func (c *begun) Read(b []byte) (int, error) {
	if c.again || len(b) == 0 {
		return c.Conn.Read(b)
	}
	c.again = true
	return copy(b, c.first[:]), nil
}

// ready returns the connection behind its handshake. net.Buffers writes several frames to
// it at once, unless they are encrypted.
func ready(conn net.Conn) net.Conn {
	if c, ok := conn.(*begun); ok {
		return c.Conn
	}
	return conn
}

// bind makes the proofs of s hold on one TLS connection only. Without TLS it does
// nothing.
func (s *session) bind(conn any) (err error) {
	if c, ok := conn.(encrypted); ok {
		state := c.ConnectionState()
		s.binding, err = state.ExportKeyingMaterial("EXPORTER-gopgas-rendezvous", nil, proofSize)
	}
	return err
}

// differs returns the reason to refuse a rank if only that rank, or only the first rank of the job,
// uses TLS. The caller holds mu.
func (s *Server) differs(j Joining) string {
	const remedy = "give TLS to all ranks or to none, by grun --tls, " + EnvTLS + "=1 or runtime.WithTLS"
	switch {
	case s.first == nil || s.first.TLS == j.TLS:
		return ""
	case j.TLS:
		return fmt.Sprintf("it uses TLS, but rank %d does not: %s", s.first.Rank, remedy)
	}
	return fmt.Sprintf("rank %d uses TLS, but it does not: %s", s.first.Rank, remedy)
}

// tlsFailed reports whether an error of a connection is one of TLS, not of the network.
func tlsFailed(err error) bool {
	var header tls.RecordHeaderError
	var op *net.OpError
	return errors.As(err, &header) || errors.As(err, &op) && (op.Op == "local error" || op.Op == "remote error")
}
