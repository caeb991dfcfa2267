//go:build linux

package tcp

import (
	"encoding/binary"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// opens sends the OPEN of a stream to a queue pair of n, made with a secret.
func (i *impostor) opens(q *qp, own address, acceptor token) *stream {
	s, open := i.open(q.num, own.qp, acceptor)
	i.send(open)
	return s
}

// hears reads the next frame without a payload.
func (i *impostor) hears() (frame, []byte) {
	i.t.Helper()
	b := make([]byte, 8, maxHeader)
	_, err := io.ReadFull(i.conn, b)
	require.NoError(i.t, err)
	b = b[:headerSizes[b[offKind]&(1<<kindBits-1)]]
	_, err = io.ReadFull(i.conn, b[8:])
	require.NoError(i.t, err)
	var f frame
	_, err = f.decode(b)
	require.NoError(i.t, err)
	return f, b
}

// hearsOf waits for a frame of a kind, and skips acknowledgements.
func (i *impostor) hearsOf(k kind) (frame, []byte) {
	i.t.Helper()
	for {
		f, b := i.hears()
		if f.kind == k {
			return f, b
		}
		require.Equal(i.t, kindAck, f.kind)
	}
}

// leading connects a queue pair of a node with an impostor.
func leading(t *testing.T) (*node, *impostor) {
	n := newNode(t, 64, driver.AllAccess)
	return n, authenticate(t, n, n.newQP(4))
}

// writes makes the impostor write a word by a stream, and waits for the acknowledgement.
func (i *impostor) writes(n *node, stream uint32, value uint64) {
	i.t.Helper()
	word := binary.NativeEndian.AppendUint64(nil, value)
	i.frame(frame{kind: kindWrite, stream: stream, flags: flagLast | flagWantAck, length: 8, addr: n.mr.Addr(), key: n.mr.RKey()}, word...)
	f, _ := i.hearsOf(kindAck)
	require.Equal(i.t, stream, f.stream)
	require.Equal(i.t, value, atomics.Word64(n.mem).Load())
}

func TestPeerOpensFurtherStream(t *testing.T) {
	for _, early := range []bool{false, true} {
		n, i := leading(t)
		q, own := n.newQP(4), address{qp: 12, token: token{1}, endpoints: n.endpoints}
		if !early {
			connect(t, q, own.encode())
		}
		s := i.opens(q, own, q.secret)
		if early { // it is kept until the queue pair knows its peer
			i.writes(n, 0, 1)
			connect(t, q, own.encode())
		}
		_, b := i.hearsOf(kindOpened)
		require.Equal(t, s.mac(kindOpened, q.secret, own.token), b[offMAC:])
		require.Nil(t, q.connection(), "not proven")
		i.send(i.proof(s, q.secret, own.token))
		i.writes(n, s.id, 2)
		i.writes(n, 0, 3)

		i.frame(frame{kind: kindEnd, stream: s.id})
		require.Equal(t, q.num, n.event().QP)
		require.Equal(t, driver.StateErr, q.currentState())
		i.hearsOf(kindEnd)
		i.writes(n, 0, 4)
		i.frame(frame{kind: kindWrite, stream: s.id, length: 20}, make([]byte, 20)...) // late
		i.frame(frame{kind: kindEnd, stream: s.id})                                    // late
		i.send(i.proof(s, q.secret, own.token))                                        // late
		i.writes(n, 0, 5)
		i.l.next = s.id
		i.opens(n.newQP(4), own, token{}) // its number was used
		i.hangsUp()
	}
}

func TestInvalidOpenIsRefused(t *testing.T) {
	for name, open := range map[string]func(n *node, i *impostor, q *qp, own address){
		"the queue pair's secret unknown": func(_ *node, i *impostor, q *qp, own address) { i.opens(q, own, token{9}) },
		"another peer": func(_ *node, i *impostor, q *qp, own address) {
			own.qp++
			i.opens(q, own, q.secret)
		},
		"another device": func(n *node, i *impostor, _ *qp, own address) {
			q := n.newQP(4)
			own.endpoints = addrPorts("127.0.0.1:1", "127.0.0.1:2")
			i.opens(q, own, q.secret)
			require.NoError(t, q.Modify(t.Context(), driver.StateRTR, driver.Attr{Peer: own.encode()}))
		},
		"the secret of one that knows no peer yet": func(n *node, i *impostor, _ *qp, own address) {
			i.opens(n.newQP(4), own, token{9})
		},
		"no such queue pair": func(_ *node, i *impostor, q *qp, own address) {
			i.opens(&qp{num: 99}, own, q.secret)
		},
		"said on another connection": func(_ *node, i *impostor, q *qp, own address) {
			dialer := i.l.dialer
			i.l.dialer[0]++
			i.opens(q, own, q.secret)
			i.l.dialer = dialer
		},
		"said of another stream": func(_ *node, i *impostor, q *qp, own address) {
			i.l.next++
			s, open := i.open(q.num, own.qp, q.secret)
			i.l.next = s.id
			binary.LittleEndian.PutUint32(open[offStream:], s.id-1)
			i.send(open)
		},
		"one that is connected": func(n *node, i *impostor, _ *qp, own address) {
			q := n.newQP(4)
			authenticate(t, n, q)
			i.opens(q, own, q.secret)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, i := leading(t)
			q, own := n.newQP(4), address{qp: 12, token: token{1}, endpoints: n.endpoints}
			connect(t, q, own.encode())
			id := i.l.next
			open(n, i, q, own)
			f, _ := i.hearsOf(kindEnd)
			require.Equal(t, id, f.stream)
			i.writes(n, 0, 1)
			require.Equal(t, driver.StateRTS, q.currentState(), "it waits for its peer")
			require.Nil(t, q.connection())
		})
	}
}

// TestFurtherStreamNeedsThePeersSecret proves the secret of one queue pair of two.
func TestFurtherStreamNeedsThePeersSecret(t *testing.T) {
	n, i := leading(t)
	q, own := n.newQP(4), address{qp: 12, token: token{1}, endpoints: n.endpoints}
	connect(t, q, own.encode())
	s := i.opens(q, own, q.secret)
	i.hearsOf(kindOpened)
	i.send(i.proof(s, q.secret, token{9}))
	i.hangsUp()
	require.ErrorIs(t, n.event().Err, errUnproven)
	require.Equal(t, driver.StateRTS, q.currentState(), "it waits for its peer")
	require.Nil(t, q.connection())
}

func TestUnexpectedFramesEndConnection(t *testing.T) {
	for name, f := range map[string]frame{
		"ACK of no stream":     {kind: kindAck, stream: 1},
		"END of no stream":     {kind: kindEnd, stream: 1},
		"OPENED of a dialer":   {kind: kindOpened},
		"OPENED of no stream":  {kind: kindOpened, stream: 1},
		"PROOF of no stream":   {kind: kindProof, stream: 1},
		"PROOF twice":          {kind: kindProof},
		"OPEN of a stream":     {kind: kindOpen},
		"OPEN of a later one":  {kind: kindOpen, stream: 2},
		"HELLO within frames":  {kind: kindHello},
		"HELLO of one that is": {kind: kindHello, stream: 1},
	} {
		t.Run(name, func(t *testing.T) {
			n, i := leading(t)
			i.frame(f)
			i.hangsUp()
			require.ErrorIs(t, n.event().Err, errProtocol)
		})
	}
}

// TestFrameBeforeProofIsCut sends a write behind OPEN.
func TestFrameBeforeProofIsCut(t *testing.T) {
	n := newNode(t, 64, driver.AllAccess)
	q, own := n.newQP(4), address{qp: 12, token: token{1}, endpoints: n.endpoints}
	connect(t, q, own.encode())
	i := newImpostor(t, n)
	i.greet(q, own.qp)
	i.frame(frame{kind: kindWrite, flags: flagLast, length: 1, addr: n.mr.Addr(), key: n.mr.RKey()}, 1)
	i.isCut()
	require.Zero(t, n.mem[0])
	require.Equal(t, driver.StateRTS, q.currentState(), "it waits for its peer")
}

// TestOpenedWithWrongMACIsRefused opens a stream to a queue pair without its secret.
func TestOpenedWithWrongMACIsRefused(t *testing.T) {
	n := newNode(t, 64, driver.AllAccess)
	q, r := n.newQP(4), n.newQP(4)
	n.attach(q)
	n.hears(q, func(l *link) {
		l.outgoing = true
		l.path.links = []*link{l}
		r.mu.Store(&l.path.mu)
		l.path.bind(r)
		r.state = driver.StateRTS
		l.path.seek()
		require.Equal(t, streamRequested, l.find(1).state)
		b := make([]byte, headerSizes[kindOpened])
		(&frame{kind: kindOpened, stream: 1}).encode(b)
		require.ErrorIs(t, l.process(b), errUnproven)
	})
	require.Nil(t, r.connection())
}

// TestOpeningsOfOneQueuePairAreBounded opens more streams for a queue pair that knows
// no peer than a device keeps.
func TestOpeningsOfOneQueuePairAreBounded(t *testing.T) {
	n, i := leading(t)
	q, own := n.newQP(4), address{qp: 12, token: token{1}, endpoints: n.endpoints}
	for range maxOpenings {
		i.opens(q, own, q.secret)
	}
	last := newImpostor(t, n) // which makes the device end the oldest
	hello := last.hello()
	s, open := last.open(q.num, own.qp, q.secret)
	last.send(append(hello, open...))
	f, _ := i.hearsOf(kindEnd)
	require.EqualValues(t, 1, f.stream)
	require.Len(t, q.waiting(), maxOpenings)
	connect(t, q, own.encode())
	last.hearsHello()
	_, b := last.hearsOf(kindOpened)
	require.Equal(t, s.mac(kindOpened, q.secret, own.token), b[offMAC:])
	last.send(last.proof(s, q.secret, own.token))
	for range maxOpenings - 1 {
		i.hearsOf(kindOpened)
	}
	for range maxOpenings - 1 { // they were too late
		i.hearsOf(kindEnd)
	}
	last.writes(n, s.id, 1)
	i.writes(n, 0, 2)
}

// TestDialerThatReadsNoResponsesIsCut makes a dialer open streams without end.
func TestDialerThatReadsNoResponsesIsCut(t *testing.T) {
	n := newNode(t, 64, driver.AllAccess)
	q := n.newQP(4)
	n.attach(q)
	n.hears(q, func(l *link) {
		l.out.blocked = true // the socket takes nothing more
		var err error
		open := make([]byte, headerSizes[kindOpen]) // for no queue pair
		for err == nil && l.out.queued < 2*controlMax {
			(&frame{kind: kindOpen, stream: l.next}).encode(open)
			err = l.process(open)
		}
		require.ErrorIs(t, err, errProtocol)
	})
}

// waiting returns the streams that wait for q.
func (q *qp) waiting() []*stream {
	q.dev.token.Lock()
	defer q.dev.token.Unlock()
	return slices.Clone(q.openings)
}
