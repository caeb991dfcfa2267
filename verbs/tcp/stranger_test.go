//go:build linux

package tcp

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
)

// works requires that a write over the pair arrives.
func works(t *testing.T, a, b *node, qa *qp) {
	t.Helper()
	post(t, qa, driver.WorkRequest{ID: 5, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment([]byte("undisturbed")), Remote: b.at(0)})
	require.EqualValues(t, 5, a.success().ID)
	require.Equal(t, "undisturbed", string(b.mem[:11]))
}

func TestGarbageIsCut(t *testing.T) {
	a, b, qa, qb := pair(t, 64)
	i := new(impostor)
	hello := i.hello()
	_, open := i.open(qb.num, qa.num, qb.secret)
	with := func(change func(hello, open []byte)) []byte {
		h, o := bytes.Clone(hello), bytes.Clone(open)
		change(h, o)
		return append(h, o...)
	}
	for name, garbage := range map[string][]byte{
		"zeroes":          make([]byte, maxHeader),
		"HTTP":            bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 10),
		"magic":           with(func(h, _ []byte) { h[offHelloMagic]++ }),
		"version":         with(func(h, _ []byte) { h[offHelloVersion]++ }),
		"HELLO of stream": with(func(h, _ []byte) { h[offStream]++ }),
		"two HELLOs":      append(bytes.Clone(hello), hello...),
		"no HELLO":        open,
		"unknown QP":      with(func(_, o []byte) { o[offOpenAcceptor] = 99 }),
		"wrong MAC":       with(func(_, o []byte) { o[offMAC]++ }),
		"other stream":    with(func(_, o []byte) { o[offStream]++ }),
		"taken already":   with(func(_, _ []byte) {}),
	} {
		t.Run(name, func(t *testing.T) {
			works(t, a, b, qa)
			i := newImpostor(t, b)
			i.send(garbage)
			i.isCut()
			works(t, a, b, qa)
		})
	}
}

func TestHelloWithTheWrongSecretIsCut(t *testing.T) {
	n := newNode(t, 8, 0)
	q := n.newQP(1)
	wrong := q.secret
	wrong[3]++
	i := newImpostor(t, n)
	i.send(i.hello())
	_, open := i.open(q.num, 1, wrong)
	i.send(open)
	i.isCut()
}

func TestProofWithoutThePeersSecretIsCut(t *testing.T) {
	n := newNode(t, 8, 0)
	q := n.newQP(1)
	peer := address{qp: 9, endpoints: n.endpoints}
	connect(t, q, peer.encode())
	i := newImpostor(t, n)
	s, mac := i.greet(q, 9)
	require.Equal(t, s.mac(kindOpened, q.secret, peer.token), mac)
	i.send(i.proof(s, q.secret, token{1}))
	i.isCut()
	require.Equal(t, driver.StateRTS, q.currentState(), "the queue pair still waits for its peer")
}

// TestReplayedHandshakeIsCut records a whole handshake and sends it again.
func TestReplayedHandshakeIsCut(t *testing.T) {
	n := newNode(t, 8, 0)
	q := n.newQP(1)
	peer := address{qp: 9, endpoints: n.endpoints}
	connect(t, q, peer.encode())

	first := newImpostor(t, n)
	opening := first.hello()
	s, open := first.open(q.num, 9, q.secret)
	opening = append(opening, open...)
	first.send(opening)
	first.hearsHello()
	_, opened := first.hears()
	proof := first.proof(s, q.secret, peer.token)

	second := newImpostor(t, n) // before the end of the first handshake
	second.send(opening)
	second.hearsHello()
	require.NotEqual(t, first.l.acceptor, second.l.acceptor)
	_, again := second.hears()
	require.NotEqual(t, opened, again)
	second.send(proof)
	second.isCut()

	first.send(proof) // the replay must not disturb the first connection
	eventually(t, "the proof to be read", func() bool { return q.connection() != nil })

	third := newImpostor(t, n) // after the end of the first handshake
	third.send(opening)
	third.isCut()
}

func TestReflectedMACIsCut(t *testing.T) {
	n := newNode(t, 8, 0)
	q := n.newQP(1)
	connect(t, q, (&address{qp: 9, endpoints: n.endpoints}).encode())
	i := newImpostor(t, n)
	_, mac := i.greet(q, 9)
	reflected := make([]byte, headerSizes[kindProof])
	(&frame{kind: kindProof}).encode(reflected)
	copy(reflected[offMAC:], mac)
	i.send(reflected)
	i.isCut()
}

func TestSilentStrangersLockOutNoPeer(t *testing.T) {
	a, b := newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
	var silent []net.Conn
	for range 3 * maxStrangers {
		for _, n := range []*node{a, b} {
			conn, err := net.Dial("tcp", n.endpoints[0].String())
			require.NoError(t, err)
			defer conn.Close() //nolint:errcheck // it may have been cut
			silent = append(silent, conn)
		}
	}
	qa, qb := a.newQP(4), b.newQP(4)
	connect(t, qa, qb.Address())
	connect(t, qb, qa.Address())
	works(t, a, b, qa)
	require.NoError(t, silent[0].SetReadDeadline(time.Now().Add(testwatch.Patience())))
	_, err := silent[0].Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the oldest stranger made room")
	a.token.Lock()
	defer a.token.Unlock()
	require.LessOrEqual(t, len(a.strangers), maxStrangers)
}

func TestSlowHandshakeIsCut(t *testing.T) {
	t.Parallel()
	n := newNode(t, 8, 0)
	i := newImpostor(t, n)
	i.send([]byte{byte(kindHello)})
	i.isCut() // after handshakeTimeout
}
