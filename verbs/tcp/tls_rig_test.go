//go:build linux

package tcp

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/identity"
	"github.com/gopgas/gopgas/verbs/driver"
)

// keysOf returns the TLS settings of a job with a secret.
func keysOf(t testing.TB, secret byte) *tls.Config {
	t.Helper()
	c, err := identity.Config(bytes.Repeat([]byte{secret}, 32), identity.Data)
	require.NoError(t, err)
	return c
}

// newSecureNode returns a node of the job with a secret.
func newSecureNode(t testing.TB, secret byte, timeout time.Duration) *node {
	t.Helper()
	return newNodeWith(t, Config{Listen: "127.0.0.1", PeerTimeout: timeout, TLS: keysOf(t, secret)}, 4<<20, driver.AllAccess)
}

// newLoggedNode returns a secure node, and the key log of its connections and of impostors.
func newLoggedNode(t testing.TB) (*node, *bytes.Buffer) {
	t.Helper()
	secrets := new(bytes.Buffer) // crypto/tls writes it under a lock
	cfg := Config{Listen: "127.0.0.1", PeerTimeout: 10 * time.Second, TLS: keysOf(t, 1)}
	cfg.TLS.KeyLogWriter = secrets // before the device's goroutine reads it
	return newNodeWith(t, cfg, 4<<20, driver.AllAccess), secrets
}

// A relay is a proxy between a dialer and an acceptor. It changes one piece of the
// dialer's bytes once the test requests that.
type relay struct {
	listener net.Listener
	to       netip.AddrPort
	change   atomic.Pointer[func(b []byte) (changed []byte, more bool)]
	done     sync.WaitGroup
	stop     chan struct{}
}

func newRelay(t testing.TB, to netip.AddrPort) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &relay{listener: l, to: to, stop: make(chan struct{})}
	r.done.Go(r.accept)
	t.Cleanup(func() {
		l.Close()
		close(r.stop)
		r.done.Wait()
	})
	return r
}

func (r *relay) accept() {
	for {
		from, err := r.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", r.to.String())
		if err != nil {
			from.Close()
			continue
		}
		over := make(chan struct{}, 2)
		r.done.Go(func() {
			r.forward(to, from)
			over <- struct{}{}
		})
		r.done.Go(func() {
			io.Copy(from, to) //nolint:errcheck // ends with the connection
			over <- struct{}{}
		})
		r.done.Go(func() {
			select {
			case <-over:
			case <-r.stop:
			}
			to.Close()
			from.Close()
		})
	}
}

// forward copies the dialer's bytes.
func (r *relay) forward(to io.Writer, from io.Reader) {
	b := make([]byte, 256<<10)
	for {
		n, err := from.Read(b)
		out, more := b[:n], true
		if change := r.change.Load(); n > 0 && change != nil && r.change.CompareAndSwap(change, nil) {
			out, more = (*change)(out)
		}
		if _, failed := to.Write(out); failed != nil || err != nil || !more {
			return
		}
	}
}

// endpoint returns the address of the relay.
func (r *relay) endpoint() netip.AddrPort { return netip.MustParseAddrPort(r.listener.Addr().String()) }

// relayed connects two nodes by a relay. It returns the dialer first.
func relayed(t testing.TB, a, b *node) (dialer, acceptor *node, qd, qa *qp, r *relay) {
	t.Helper()
	if a.id > b.id {
		a, b = b, a
	}
	qd, qa = a.newQP(128), b.newQP(128)
	r = newRelay(t, b.endpoints[0])
	to, err := decodeAddress(qa.Address())
	require.NoError(t, err)
	to.endpoints = []netip.AddrPort{r.endpoint()}
	connect(t, qa, qd.Address())
	connect(t, qd, to.encode())
	return a, b, qd, qa, r
}

// A layers is a pair of TLS layers without sockets, client first, behind their handshake.
type layers [2]*secured

func newLayers(t testing.TB, pieces int) layers {
	t.Helper()
	config := keysOf(t, 1)
	l := layers{{}, {}}
	l[0].conn, l[1].conn = tls.Client(transport{l[0]}, config), tls.Server(transport{l[1]}, config)
	t.Cleanup(func() { l[0].stop(); l[1].stop() })
	_, err := l[0].step()
	require.NoError(t, err)
	for turn := 1; !l[0].open || !l[1].open; turn = 1 - turn {
		l.carry(t, 1-turn, turn, pieces, func() {
			if !l[turn].open {
				_, err := l[turn].step()
				require.NoError(t, err)
			}
		})
	}
	return l
}

// carry moves all bytes that leave one end to the other, and calls arrived behind each
// piece of them.
func (l layers) carry(t testing.TB, from, to, pieces int, arrived func()) {
	t.Helper()
	s := l[from]
	for s.sent < len(s.leaving) {
		n := min(pieces, len(s.leaving)-s.sent)
		l[to].arrived = append(l[to].arrived, s.leaving[s.sent:s.sent+n]...)
		s.sent += n
		arrived()
	}
}

// plaintext reads all that an end can decrypt.
func (l layers) plaintext(t testing.TB, at int) []byte {
	t.Helper()
	var all []byte
	b := make([]byte, maxRecord)
	for {
		n, err := l[at].read(b)
		all = append(all, b[:n]...)
		if err != nil {
			require.ErrorIs(t, err, errNoBytes)
			return all
		}
	}
}
