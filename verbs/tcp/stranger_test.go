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
	good := make([]byte, helloSize)
	to, err := decodeAddress(qb.Address())
	require.NoError(t, err)
	copy(good, new(handshake).hello(&to, qa.num))
	for name, garbage := range map[string][]byte{
		"zeroes":        make([]byte, helloSize),
		"HTTP":          bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 10),
		"version":       append(bytes.Clone(good[:4]), append([]byte{9}, good[5:]...)...),
		"unknown QP":    append(bytes.Clone(good[:offHelloAcceptor]), append([]byte{9, 9, 9, 9}, good[offHelloDialer:]...)...),
		"wrong MAC":     append(bytes.Clone(good[:offHelloMAC]), make([]byte, macSize)...),
		"taken already": good,
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
	to, err := decodeAddress(q.Address())
	require.NoError(t, err)
	to.token[3]++
	i := newImpostor(t, n)
	i.send(i.hs.hello(&to, 1))
	i.isCut()
}

func TestProofWithoutThePeersSecretIsCut(t *testing.T) {
	n := newNode(t, 8, 0)
	q := n.newQP(1)
	peer := address{qp: 9, endpoints: n.endpoints}
	connect(t, q, peer.encode())
	i := newImpostor(t, n)
	challenge := i.greet(q, 9)
	require.Equal(t, i.hs.mac("challenge", q.secret, peer.token), challenge[nonceSize:])
	i.send(i.hs.mac("proof", q.secret, token{1}))
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
	to, err := decodeAddress(q.Address())
	require.NoError(t, err)
	hello := first.hs.hello(&to, 9)
	first.send(hello)
	challenge := make([]byte, challengeSize)
	_, err = io.ReadFull(first.conn, challenge)
	require.NoError(t, err)
	copy(first.hs.acceptor[:], challenge)
	proof := first.hs.mac("proof", q.secret, peer.token)

	second := newImpostor(t, n) // before the end of the first handshake
	second.send(hello)
	again := make([]byte, challengeSize)
	_, err = io.ReadFull(second.conn, again)
	require.NoError(t, err)
	require.NotEqual(t, challenge, again)
	second.send(proof)
	second.isCut()

	first.send(proof) // the replay must not disturb the first connection
	welcome := make([]byte, macSize)
	_, err = io.ReadFull(first.conn, welcome)
	require.NoError(t, err)

	third := newImpostor(t, n) // after the end of the first handshake
	third.send(hello)
	third.isCut()
}

func TestReflectedChallengeIsCut(t *testing.T) {
	n := newNode(t, 8, 0)
	q := n.newQP(1)
	connect(t, q, (&address{qp: 9, endpoints: n.endpoints}).encode())
	i := newImpostor(t, n)
	challenge := i.greet(q, 9)
	i.send(challenge[nonceSize:])
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
	n := newNode(t, 8, 0)
	i := newImpostor(t, n)
	i.send([]byte("PGTH"))
	i.isCut() // after handshakeTimeout
}
