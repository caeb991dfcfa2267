//go:build linux

package tcp

import (
	"bytes"
	"context"
	"crypto/tls"
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
	l    link // nonces, and the number of the next stream
	own  address
}

func newImpostor(t testing.TB, n *node) *impostor {
	t.Helper()
	conn, err := net.Dial("tcp", n.endpoints[0].String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() }) //nolint:errcheck // it may be closed already
	i := &impostor{t: t, conn: patient{conn.(*net.TCPConn)}}
	if n.tls != nil {
		i.secure(n.tls)
	}
	return i
}

// secure makes the impostor speak TLS.
func (i *impostor) secure(config *tls.Config) {
	conn := tls.Client(i.conn, config)
	require.NoError(i.t, conn.Handshake())
	state := conn.ConnectionState()
	var err error
	i.l.binding, err = state.ExportKeyingMaterial("EXPORTER-gopgas-tcp", nil, 32)
	require.NoError(i.t, err)
	i.conn = conn
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

// frames returns the frames that f queues.
func (i *impostor) frames(f func()) []byte {
	f()
	defer i.l.out.reset()
	return bytes.Clone(i.l.out.buf)
}

// hello returns a HELLO with a fresh nonce.
func (i *impostor) hello() []byte {
	return i.frames(func() { i.l.greet(&i.l.dialer) })
}

// open returns the OPEN of the next stream, made with a secret of the acceptor.
func (i *impostor) open(acceptorQP, dialerQP uint32, secret token) (*stream, []byte) {
	s := &stream{id: i.l.next, link: &i.l, acceptorQP: acceptorQP, dialerQP: dialerQP}
	i.l.next++
	return s, i.frames(func() { s.put(kindOpen, secret) })
}

// proof returns the PROOF of a stream, made with these secrets.
func (i *impostor) proof(s *stream, acceptor, dialer token) []byte {
	return i.frames(func() { s.put(kindProof, acceptor, dialer) })
}

// hearsHello reads the HELLO of the acceptor.
func (i *impostor) hearsHello() {
	i.t.Helper()
	_, b := i.hears()
	require.Equal(i.t, byte(kindHello), b[offKind])
	copy(i.l.acceptor[:], b[offHelloNonce:])
}

// greet opens a stream to q. It returns the stream and the MAC of the OPENED.
func (i *impostor) greet(q *qp, dialerQP uint32) (*stream, []byte) {
	i.t.Helper()
	hello := i.hello()
	s, open := i.open(q.num, dialerQP, q.secret)
	i.send(append(hello, open...))
	i.hearsHello()
	f, b := i.hears()
	require.Equal(i.t, kindOpened, f.kind)
	return s, b[offMAC:]
}

// authenticate connects q with an impostor that has a peer's secrets, and returns the
// impostor.
func authenticate(t testing.TB, n *node, q *qp) *impostor {
	t.Helper()
	i := newImpostor(t, n)
	i.own = address{qp: 4711, endpoints: n.endpoints, tls: n.tls != nil} // the lowest possible secret: it dials
	connect(t, q, i.own.encode())
	s, mac := i.greet(q, i.own.qp)
	require.Equal(t, s.mac(kindOpened, q.secret, i.own.token), mac)
	i.send(i.proof(s, q.secret, i.own.token))
	eventually(t, "the proof to be read", func() bool { return q.connection() != nil })
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

func (q *qp) connection() *link {
	q.lock()
	defer q.unlock()
	return q.link
}
