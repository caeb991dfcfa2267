//go:build linux

package tcp

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/identity"
	"github.com/gopgas/gopgas/verbs/driver"
)

// TestTLSReadsRecordsInAnyPieces guards the behavior of crypto/tls that the layer needs:
// an error for a lack of bytes does not stick, wherever a record is cut.
func TestTLSReadsRecordsInAnyPieces(t *testing.T) {
	for _, pieces := range []int{1, 2, 5, 22, 1000, 1 << 20} {
		l := newLayers(t, pieces)
		var o outbox
		sent := bytes.Repeat([]byte("0123456789abcdef"), 10<<10/16+1)
		o.refer(piece{mem: sent})
		for !o.empty() {
			require.NoError(t, l[0].encrypt(&o))
		}
		var got []byte
		l.carry(t, 0, 1, pieces, func() { got = append(got, l.plaintext(t, 1)...) })
		require.Equal(t, sent, got, "pieces of %d bytes", pieces)
		require.Empty(t, l[1].arrived)
	}
}

func TestTLSConnectionCarriesWrites(t *testing.T) {
	a, b := newSecureNode(t, 1, 10*time.Second), newSecureNode(t, 1, 10*time.Second)
	dialer, acceptor, qd, _, r := relayed(t, a, b)
	text := "these bytes cross the network"
	seen := make(chan []byte, 1)
	works(t, dialer, acceptor, qd)
	tap := func(b []byte) ([]byte, bool) { seen <- bytes.Clone(b); return b, true }
	r.change.Store(&tap)
	post(t, qd, driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment([]byte(text)), Remote: acceptor.at(0)})
	dialer.success()
	require.Equal(t, text, string(acceptor.mem[:len(text)]))
	require.NotContains(t, string(<-seen), "bytes", "plaintext crossed the network")
}

// TestTLSReportsChangedStreams changes a connection behind its handshake. Both ends get
// errors, and their other connections go on.
func TestTLSReportsChangedStreams(t *testing.T) {
	for name, change := range map[string]func(b []byte) ([]byte, bool){
		"one bit flipped":     func(b []byte) ([]byte, bool) { b[len(b)/2] ^= 4; return b, true },
		"first bit flipped":   func(b []byte) ([]byte, bool) { b[0] ^= 1; return b, true },
		"cut within a record": func(b []byte) ([]byte, bool) { return b[:len(b)-1], false },
		"cut at a record":     func([]byte) ([]byte, bool) { return nil, false },
		"a record repeated":   func(b []byte) ([]byte, bool) { return append(bytes.Clone(b), b...), true },
		"a record left out":   func([]byte) ([]byte, bool) { return nil, true },
		"garbage behind":      func(b []byte) ([]byte, bool) { return append(bytes.Clone(b), "GET / HTTP/1.1\r\n\r\n"...), true },
	} {
		t.Run(name, func(t *testing.T) {
			a, b, c := newSecureNode(t, 1, 10*time.Second), newSecureNode(t, 1, 10*time.Second), newSecureNode(t, 1, 10*time.Second)
			qac, qca := a.newQP(4), c.newQP(4)
			connect(t, qac, qca.Address())
			connect(t, qca, qac.Address())
			works(t, a, c, qac)
			dialer, acceptor, qd, qa, r := relayed(t, a, b)
			works(t, dialer, acceptor, qd)
			r.change.Store(&change)
			wrs := []driver.WorkRequest{
				{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(bytes.Repeat([]byte{9}, 60)), Remote: acceptor.at(8)},
				{ID: 2, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(bytes.Repeat([]byte{9}, 60)), Remote: acceptor.at(80)},
			}
			post(t, qd, wrs[0])
			eventually(t, "the change", func() bool { return r.change.Load() == nil })
			post(t, qd, wrs[1])
			for _, end := range []struct {
				n *node
				q *qp
			}{{dialer, qd}, {acceptor, qa}} {
				e := end.n.event()
				require.Equal(t, end.q.num, e.QP)
				require.ErrorIs(t, e.Err, driver.ErrLost)
				if end.n == acceptor {
					var broken *TLSError
					require.ErrorAs(t, e.Err, &broken)
					require.False(t, broken.Handshake)
					require.True(t, broken.Peer.IsValid())
					require.ErrorContains(t, e.Err, "look for what changes or cuts")
				}
			}
			dialer.next()
			dialer.next()
			works(t, a, c, qac)
		})
	}
}

// TestTLSTruncationIsAnError ends connections with and without close_notify.
func TestTLSTruncationIsAnError(t *testing.T) {
	for name, end := range map[string]func(c *tls.Conn){
		"close_notify": func(c *tls.Conn) { c.Close() },
		"without":      func(c *tls.Conn) { c.NetConn().Close() },
	} {
		t.Run(name, func(t *testing.T) {
			n := newSecureNode(t, 1, 10*time.Second)
			q := n.newQP(4)
			i := authenticate(t, n, q)
			end(i.conn.(*tls.Conn))
			e := n.event()
			var broken *TLSError
			require.Equal(t, name == "without", errors.As(e.Err, &broken), "%v", e.Err)
			require.Equal(t, name == "without", errors.Is(e.Err, errTruncated), "%v", e.Err)
			require.Equal(t, name != "without", errors.Is(e.Err, errPeerClosed), "%v", e.Err)
		})
	}
}

// TestTLSConnectionsEndByCloseNotify closes a queue pair and looks at the bytes that the
// peer gets.
func TestTLSConnectionsEndByCloseNotify(t *testing.T) {
	n := newSecureNode(t, 1, 10*time.Second)
	q := n.newQP(4)
	i := authenticate(t, n, q)
	require.NoError(t, q.Close())
	f, _ := i.hearsOf(kindEnd)
	require.EqualValues(t, 0, f.stream)
	_, err := i.conn.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	_, err = i.conn.(*tls.Conn).NetConn().Read(make([]byte, 1))
	require.Equal(t, io.EOF, err, "the socket ends behind it")
}

func TestTLSRefusesAnotherSecret(t *testing.T) {
	a, b := newSecureNode(t, 1, time.Second), newSecureNode(t, 2, time.Second)
	if a.id > b.id {
		a, b = b, a
	}
	qa, qb := a.newQP(4), b.newQP(4)
	connect(t, qb, qa.Address())
	connect(t, qa, qb.Address())
	e := a.event()
	require.ErrorIs(t, e.Err, identity.ErrStranger)
	var refused *TLSError
	require.ErrorAs(t, e.Err, &refused)
	require.True(t, refused.Handshake)
	require.Equal(t, b.endpoints[0], refused.Peer)
	require.Error(t, b.event().Err)
}

func TestDevicesWithAndWithoutTLSRefuseEachOther(t *testing.T) {
	a, b := newSecureNode(t, 1, 10*time.Second), newNode(t, 64, driver.AllAccess)
	qa, qb := a.newQP(4), b.newQP(4)
	for q, peer := range map[*qp]*qp{qa: qb, qb: qa} {
		err := q.Modify(t.Context(), driver.StateRTR, driver.Attr{Peer: peer.Address()})
		var refused *TLSError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, peer.dev.endpoints[0], refused.Peer)
		require.ErrorContains(t, err, "give both ends TLS with the same keys, or neither")
	}
}

// TestTLSDialerGivesUpAtPlainAcceptor forges addresses, which else say whether a device
// uses TLS.
func TestTLSDialerGivesUpAtPlainAcceptor(t *testing.T) {
	for _, secure := range []bool{true, false} { // the dialer
		a, b := newSecureNode(t, 1, time.Second), newNodeWith(t, Config{Listen: "127.0.0.1", PeerTimeout: time.Second}, 64, driver.AllAccess)
		if !secure {
			a, b = b, a
		}
		a.device.id, b.device.id = 1, 2 // so a dials
		qa, qb := a.newQP(4), b.newQP(4)
		to, err := decodeAddress(qb.Address())
		require.NoError(t, err)
		to.tls = secure
		connect(t, qa, to.encode())
		e := a.event()
		var refused *TLSError
		require.Equal(t, secure, errors.As(e.Err, &refused), "%v", e.Err)
	}
}

// TestTLSStrangersAreCut sends bytes that are no handshake, or no frames behind one.
func TestTLSStrangersAreCut(t *testing.T) {
	a, b := newSecureNode(t, 1, 10*time.Second), newSecureNode(t, 1, 10*time.Second)
	qa, qb := a.newQP(4), b.newQP(4)
	connect(t, qa, qb.Address())
	connect(t, qb, qa.Address())
	works(t, a, b, qa)
	for name, garbage := range map[string]string{
		"zeroes":             strings.Repeat("\x00", 100),
		"HTTP":               "GET / HTTP/1.1\r\nHost: here\r\n\r\n",
		"HELLO without TLS":  string(new(impostor).hello()),
		"a long record":      "\x16\x03\x01\xff\xff" + strings.Repeat("x", 100),
		"an alert":           "\x15\x03\x01\x00\x02\x02\x28",
		"a record of TLS 1":  "\x16\x03\x01\x00\x04\x01\x00\x00\x00",
		"an encrypted frame": "\x17\x03\x03\x00\x20" + strings.Repeat("x", 32),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", b.endpoints[0].String())
			require.NoError(t, err)
			i := &impostor{t: t, conn: patient{conn.(*net.TCPConn)}}
			i.send([]byte(garbage))
			i.hangsUp()
			conn.Close()
			works(t, a, b, qa)
		})
	}
	t.Run("garbage behind the handshake", func(t *testing.T) {
		i := newImpostor(t, b)
		i.send(bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 10))
		i.isCut()
		works(t, a, b, qa)
	})
	t.Run("no certificate", func(t *testing.T) {
		conn, err := net.Dial("tcp", b.endpoints[0].String())
		require.NoError(t, err)
		defer conn.Close()
		c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		_, err = c.Read(make([]byte, 1))
		require.ErrorContains(t, err, "remote error: tls")
		works(t, a, b, qa)
	})
}

// TestTLSProofsHoldOnOneConnection relays the right proofs over another TLS connection.
func TestTLSProofsHoldOnOneConnection(t *testing.T) {
	n := newSecureNode(t, 1, 10*time.Second)
	q := n.newQP(1)
	i := newImpostor(t, n)
	i.l.binding[0]++
	i.send(i.hello())
	_, open := i.open(q.num, 1, q.secret)
	i.send(open)
	i.isCut()
}

// TestDeviceClosesDuringHandshakeOfTLS leaves handshakes of strangers unfinished. TestMain
// looks for goroutines.
func TestDeviceClosesDuringHandshakeOfTLS(t *testing.T) {
	n := newSecureNode(t, 1, 10*time.Second)
	for range 3 {
		conn, err := net.Dial("tcp", n.endpoints[0].String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte{0x16, 3, 1, 2, 0})
		require.NoError(t, err)
	}
	eventually(t, "the handshakes to begin", func() bool {
		n.token.Lock()
		defer n.token.Unlock()
		begun := 0
		for _, l := range n.strangers {
			if l.tls.turn != nil {
				begun++
			}
		}
		return begun == 3
	})
	require.NoError(t, n.Close())
}

// TestTLSRespondsToKeyUpdate has a peer request new keys. The device reads on by the peer's
// new key, and the peer by the device's.
func TestTLSRespondsToKeyUpdate(t *testing.T) {
	n, secrets := newLoggedNode(t)
	q := n.newQP(4)
	i := authenticate(t, n, q)
	w := newRecordWriter(t, secrets.String())
	w.sequence = 2 // records of the impostor so far: HELLO with OPEN, PROOF
	raw := i.conn.(*tls.Conn).NetConn()
	_, err := raw.Write(w.record(0x16, []byte{24, 0, 0, 1, 1})) // KeyUpdate, update_requested
	require.NoError(t, err)
	w.update()
	word := make([]byte, headerSizes[kindWrite]+8)
	(&frame{kind: kindWrite, flags: flagLast | flagWantAck, length: 8, addr: n.mr.Addr(), key: n.mr.RKey()}).encode(word)
	binary.NativeEndian.PutUint64(word[len(word)-8:], 42)
	_, err = raw.Write(w.record(0x17, word))
	require.NoError(t, err)
	i.hearsOf(kindAck) // encrypted by the device's new key
	require.EqualValues(t, 42, atomics.Word64(n.mem).Load())
}

// TestTLSPeerThatReadsNoResponsesIsCut floods a device with requests for new keys.
func TestTLSPeerThatReadsNoResponsesIsCut(t *testing.T) {
	l := newLayers(t, 1<<20)
	l[1].leaving = append(l[1].leaving, make([]byte, maxResponses+tlsBatch+1)...)
	_, err := l[1].read(make([]byte, 1))
	require.ErrorIs(t, err, errProtocol)
}
