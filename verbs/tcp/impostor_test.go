package tcp

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
)

// An impostor speaks the protocol by hand: a stranger, or a peer that was
// authenticated and then misbehaves.
type impostor struct {
	t    testing.TB
	conn net.Conn
	hs   handshake
	own  address
}

func newImpostor(t testing.TB, n *node) *impostor {
	t.Helper()
	conn, err := net.Dial("tcp", n.endpoints[0].String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() }) //nolint:errcheck // it may be closed already
	return &impostor{t: t, conn: patient{conn.(*net.TCPConn)}}
}

// patient is a connection on which each read and write is bounded.
type patient struct{ *net.TCPConn }

func (c patient) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(testwatch.Patience())); err != nil {
		return 0, err
	}
	return c.TCPConn.Read(b)
}

func (c patient) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(testwatch.Patience())); err != nil {
		return 0, err
	}
	return c.TCPConn.Write(b)
}

func (i *impostor) send(b []byte) {
	i.t.Helper()
	_, err := i.conn.Write(b)
	require.NoError(i.t, err)
}

// isCut requires that the connection ends without another byte.
func (i *impostor) isCut() {
	i.t.Helper()
	b, err := io.ReadAll(i.conn)
	require.Empty(i.t, b, "a stranger was told something")
	require.False(i.t, isTimeout(err), "the connection was not cut")
}

func isTimeout(err error) bool {
	var as net.Error
	return errors.As(err, &as) && as.Timeout()
}

// hangsUp waits for the connection to end, and discards all input before.
func (i *impostor) hangsUp() {
	i.t.Helper()
	_, err := io.Copy(io.Discard, i.conn)
	require.False(i.t, isTimeout(err), "the connection was not cut")
}

// greet sends q a hello and returns the challenge.
func (i *impostor) greet(q *qp, dialerQP uint32) []byte {
	i.t.Helper()
	to, err := decodeAddress(q.Address())
	require.NoError(i.t, err)
	i.send(i.hs.hello(&to, dialerQP))
	challenge := make([]byte, challengeSize)
	_, err = io.ReadFull(i.conn, challenge)
	require.NoError(i.t, err)
	copy(i.hs.acceptor[:], challenge)
	return challenge
}

// authenticate connects q with an impostor that has a peer's secrets, and returns the
// impostor.
func authenticate(t testing.TB, n *node, q *qp) *impostor {
	t.Helper()
	i := newImpostor(t, n)
	i.own = address{qp: 4711, endpoints: n.endpoints} // the lowest possible secret: it dials
	connect(t, q, i.own.encode())
	i.greet(q, i.own.qp)
	i.send(i.hs.mac("proof", q.secret, i.own.token))
	welcome := make([]byte, macSize)
	_, err := io.ReadFull(i.conn, welcome)
	require.NoError(t, err)
	require.Equal(t, i.hs.mac("welcome", q.secret, i.own.token), welcome)
	return i
}

func (i *impostor) frame(f frame, body ...byte) {
	i.t.Helper()
	b := make([]byte, headerSizes[f.kind])
	f.encode(b)
	i.send(append(b, body...))
}

// event waits for one asynchronous event.
func (n *node) event() driver.AsyncEvent {
	n.t.Helper()
	ctx, cancel := testwatch.With(context.Background())
	defer cancel()
	select {
	case e := <-n.events:
		return e
	case <-ctx.Done():
		require.Fail(n.t, "no event")
		return driver.AsyncEvent{}
	}
}

func (q *qp) currentState() driver.State {
	q.lock()
	defer q.unlock()
	return q.state
}
