package bootstrap

import (
	"bytes"
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

func TestMain(m *testing.M) { testwatch.Main(m) }

var testSecret = bytes.Repeat([]byte{7}, SecretSize)

// watchdog returns the context of a test: a longer wait is a failure.
func watchdog(t *testing.T) context.Context {
	ctx, cancel := testwatch.With(context.Background())
	t.Cleanup(cancel)
	return ctx
}

// connect makes a connection of one transport to a server.
type connect func(t *testing.T, s *Server) net.Conn

func overPipe(_ *testing.T, s *Server) net.Conn {
	ours, theirs := net.Pipe()
	s.Attach(theirs)
	return ours
}

// listen serves s on loopback until the test ends.
func listen(t *testing.T, s *Server) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		s.Close()
		require.NoError(t, <-served)
	})
	return l.Addr().String()
}

// overTCP gives s a listener of its own for every connection.
func overTCP(t *testing.T, s *Server) net.Conn {
	conn, err := net.Dial("tcp", listen(t, s))
	require.NoError(t, err)
	return conn
}

// overTLS is overTCP with TLS.
func overTLS(t *testing.T, s *Server) net.Conn {
	conn, err := encrypt(watchdog(t), overTCP(t, s), testSecret)
	require.NoError(t, err)
	return conn
}

var transports = map[string]connect{"pipe": overPipe, "tcp": overTCP, "tls": overTLS}

// eachTransport runs a test over every kind of connection.
func eachTransport(t *testing.T, f func(t *testing.T, via connect)) {
	for name, via := range transports {
		t.Run(name, func(t *testing.T) { f(t, via) })
	}
}

// newServer returns a server that is closed when the test ends.
func newServer(t *testing.T, size int, hooks Hooks) *Server {
	s := NewServer(size, testSecret, hooks)
	t.Cleanup(func() { s.Close() })
	return s
}

// joinAll joins every rank of s; events gives each its handlers and may be nil.
func joinAll(t *testing.T, s *Server, via connect, events func(rank int) Events) []*Client {
	clients := make([]*Client, s.size)
	for r := range clients {
		ev := Events{}
		if events != nil {
			ev = events(r)
		}
		c, err := NewClient(watchdog(t), via(t, s), testSecret, r, ev)
		require.NoError(t, err)
		t.Cleanup(func() {
			c.end(ErrClosed)
			c.io.Wait()
		})
		clients[r] = c
	}
	return clients
}

// receive takes from ch under the watchdog.
func receive[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-watchdog(t).Done():
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func ranks(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
