package tcp

import (
	"encoding/binary"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// join requests the second stream for a queue pair of n, with these secrets.
func (i *impostor) join(q *qp, own address, acceptor, dialer token) {
	l := &link{hs: i.hs}
	b := make([]byte, joinSize)
	(&frame{kind: kindJoin, stream: second}).encode(b)
	binary.LittleEndian.PutUint32(b[offJoinAcceptor:], q.num)
	binary.LittleEndian.PutUint32(b[offJoinDialer:], own.qp)
	copy(b[offJoinHello:], l.joinMAC("join", q.num, own.qp, acceptor))
	copy(b[offJoinProof:], l.joinMAC("join proof", q.num, own.qp, acceptor, dialer))
	i.send(b)
}

// hears reads the next frame without a payload.
func (i *impostor) hears() (frame, []byte) {
	i.t.Helper()
	b := make([]byte, 8, maxHeader)
	_, err := io.ReadFull(i.conn, b)
	require.NoError(i.t, err)
	b = b[:headerSizes[b[offKind]]]
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

// leading connects a queue pair of a node with an impostor. The second stream of the
// connection is free.
func leading(t *testing.T) (*node, *impostor) {
	n := newNode(t, 64, driver.AllAccess)
	return n, authenticate(t, n, n.newQP(4))
}

// writes makes the impostor write a word by a stream, and waits for the acknowledgement.
func (i *impostor) writes(n *node, stream uint8, value uint64) {
	i.t.Helper()
	word := binary.NativeEndian.AppendUint64(nil, value)
	i.frame(frame{kind: kindWrite, stream: stream, flags: flagLast | flagAsk, length: 8, addr: n.mr.Addr(), key: n.mr.RKey()}, word...)
	f, _ := i.hearsOf(kindAck)
	require.Equal(i.t, stream, f.stream)
	require.Equal(i.t, value, atomics.Word64(n.mem).Load())
}

func TestPeerJoins(t *testing.T) {
	for _, early := range []bool{false, true} {
		n, i := leading(t)
		q, own := n.newQP(4), address{qp: 12, token: token{1}, endpoints: n.endpoints}
		if !early {
			connect(t, q, own.encode())
		}
		i.join(q, own, q.secret, own.token)
		if early { // it is kept until the queue pair knows its peer
			i.writes(n, 0, 1)
			connect(t, q, own.encode())
		}
		_, b := i.hearsOf(kindJoined)
		require.Equal(t, (&link{hs: i.hs}).joinMAC("joined", q.num, own.qp, q.secret, own.token), b[offJoinedMAC:joinedSize])
		i.writes(n, second, 2)
		i.writes(n, 0, 3)

		i.frame(frame{kind: kindEnd, stream: second})
		require.Equal(t, q.num, n.event().QP)
		require.Equal(t, driver.StateErr, q.currentState())
		i.hearsOf(kindEnd)
		i.writes(n, 0, 4)
		i.frame(frame{kind: kindWrite, stream: second, length: 20}, make([]byte, 20)...) // late
		i.writes(n, 0, 5)
		i.join(n.newQP(4), own, token{}, own.token) // a stream is used once
		i.hangsUp()
	}
}

func TestInvalidJoinIsRefused(t *testing.T) {
	for name, join := range map[string]func(n *node, i *impostor, q *qp, own address){
		"the queue pair's secret unknown": func(_ *node, i *impostor, q *qp, own address) { i.join(q, own, token{9}, own.token) },
		"the peer's secret unknown":       func(_ *node, i *impostor, q *qp, own address) { i.join(q, own, q.secret, token{9}) },
		"another peer": func(_ *node, i *impostor, q *qp, own address) {
			own.qp++
			i.join(q, own, q.secret, own.token)
		},
		"the secret of one that knows no peer yet": func(n *node, i *impostor, _ *qp, own address) {
			i.join(n.newQP(4), own, token{9}, own.token)
		},
		"no such queue pair": func(_ *node, i *impostor, q *qp, own address) {
			i.join(&qp{num: 99}, own, q.secret, own.token)
		},
		"said on another connection": func(n *node, i *impostor, q *qp, own address) {
			hs := i.hs
			i.hs.acceptor[0]++
			i.join(q, own, q.secret, own.token)
			i.hs = hs
		},
		"one that is connected": func(n *node, i *impostor, _ *qp, own address) {
			q := n.newQP(4)
			authenticate(t, n, q)
			i.join(q, own, q.secret, own.token)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, i := leading(t)
			q, own := n.newQP(4), address{qp: 12, token: token{1}, endpoints: n.endpoints}
			connect(t, q, own.encode())
			join(n, i, q, own)
			f, _ := i.hearsOf(kindEnd)
			require.EqualValues(t, second, f.stream)
			i.writes(n, 0, 1)
			require.Equal(t, driver.StateRTS, q.currentState(), "it waits for its peer")
			require.Nil(t, q.connection())
		})
	}
}

func TestUnexpectedJoinFramesEndConnection(t *testing.T) {
	for name, f := range map[string]frame{
		"a frame of nobody":   {kind: kindAck, stream: second},
		"end of nobody":       {kind: kindEnd, stream: second},
		"nobody asked":        {kind: kindJoined, stream: second},
		"the first one joins": {kind: kindJoin},
	} {
		t.Run(name, func(t *testing.T) {
			n, i := leading(t)
			i.frame(f)
			i.hangsUp()
			require.ErrorIs(t, n.event().Err, errProtocol)
		})
	}
}

// TestJoinedWithWrongMACIsRefused sends a queue pair that joins a JOINED without the
// secret.
func TestJoinedWithWrongMACIsRefused(t *testing.T) {
	n := newNode(t, 64, driver.AllAccess)
	q, r := n.newQP(4), n.newQP(4)
	n.attach(q)
	n.hears(q, func(l *link) { l.outgoing = true })
	n.token.Lock()
	q.peer = address{qp: 2, device: ^uint64(0), endpoints: addrPorts("127.0.0.1:1")}
	n.leaders[q.peer.device] = q
	n.token.Unlock()
	connect(t, r, q.peer.encode())
	b := make([]byte, joinedSize)
	(&frame{kind: kindJoined, stream: second}).encode(b)
	n.hears(q, func(l *link) {
		require.Equal(t, streamJoining, l.streams[second].state)
		require.ErrorIs(t, l.process(b), errUnproven)
	})
	require.Nil(t, r.connection())
}

// TestQueuePairThatGivesUpDoesNotJoinLater resets a queue pair that waits for its
// peer's response.
func TestQueuePairThatGivesUpDoesNotJoinLater(t *testing.T) {
	for range 20 {
		a, b, qa, qb := pair(t, 64)
		settled(t, a, b, qa)
		ra, rb := a.newQP(8), b.newQP(8)
		connect(t, ra, rb.Address())
		if a.id < b.id { // else it waits and sends nothing
			eventually(t, "the peer to hear of it", func() bool {
				b.token.Lock()
				defer b.token.Unlock()
				return len(rb.parked) == 1
			})
		}
		require.NoError(t, ra.Modify(t.Context(), driver.StateReset, driver.Attr{}))
		works(t, a, b, qa)
		works(t, b, a, qb)
		require.NoError(t, ra.Modify(t.Context(), driver.StateInit, driver.Attr{}))
		connect(t, ra, rb.Address())
		connect(t, rb, ra.Address())
		works(t, a, b, ra)
		require.NoError(t, qa.Close())
		works(t, b, a, rb)
	}
}

// dialing returns two nodes; the first one dials.
func dialing(t *testing.T) (d, a *node) {
	d, a = newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
	if d.id > a.id {
		d, a = a, d
	}
	return d, a
}

// dialed returns two such nodes with a connection that further queue pairs may join.
func dialed(t *testing.T) (d, a *node, qd, qa *qp) {
	d, a = dialing(t)
	qd, qa = d.newQP(8), a.newQP(8)
	connect(t, qd, qa.Address())
	connect(t, qa, qd.Address())
	settled(t, d, a, qd)
	return d, a, qd, qa
}

func TestQueuePairsThatConnectAtOnceShare(t *testing.T) {
	shared := 0
	for i := range 50 {
		a, b := newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
		qa, qb, ra, rb := a.newQP(8), b.newQP(8), a.newQP(8), b.newQP(8)
		var both sync.WaitGroup
		both.Go(func() {
			connect(t, qa, qb.Address())
			connect(t, ra, rb.Address())
		})
		both.Go(func() {
			ends := [][2]*qp{{qb, qa}, {rb, ra}}
			connect(t, ends[i%2][0], ends[i%2][1].Address())
			connect(t, ends[1-i%2][0], ends[1-i%2][1].Address())
		})
		both.Wait()
		works(t, a, b, qa)
		works(t, b, a, qb)
		works(t, a, b, ra)
		works(t, b, a, rb)
		if qa.connection() == ra.connection() {
			shared++
		}
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	}
	require.Positive(t, shared, "whoever takes too long is left alone")
}

// TestJoinDuringRefusal requests a stream of a connection that the peer has just ended
// because of the first queue pair.
func TestJoinDuringRefusal(t *testing.T) {
	d, a, qd, qa := dialed(t)
	rd, ra := d.newQP(8), a.newQP(8)
	connect(t, ra, rd.Address())
	address, wrong := ra.Address(), a.at(0)
	wrong.RKey.Lo++

	hear := d.stall()
	post(t, qd, driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(make([]byte, 16)), Remote: wrong})
	eventually(t, "the refusal", func() bool {
		a.token.Lock()
		defer a.token.Unlock()
		return qa.link != nil && qa.link.shut
	})
	rd.lock()
	require.NoError(t, rd.connect(address))
	rd.start(0)
	require.NotNil(t, rd.dialing.joins)
	rd.unlock()
	hear()
	require.Equal(t, driver.RemoteAccess, d.next().Status)
	works(t, d, a, rd)
	require.Equal(t, driver.StateRTS, ra.currentState())
}

// TestFalseDeviceNumberDelaysNoQueuePair makes a peer claim to be on the device of
// another one.
func TestFalseDeviceNumberDelaysNoQueuePair(t *testing.T) {
	d, v := dialing(t)
	liar := newNode(t, 64, driver.AllAccess)
	liar.id = v.id
	q, mine := liar.newQP(4), d.newQP(4)
	connect(t, mine, q.Address())
	connect(t, q, mine.Address())
	settled(t, d, liar, mine)
	defer liar.stall()() // it sends no more responses
	rd, rv := d.newQP(4), v.newQP(4)
	connect(t, rd, rv.Address())
	connect(t, rv, rd.Address())
	works(t, d, v, rd)
}

// TestFollowerOfQueuePairThatConnectsElsewhere waits for the connection of a queue pair,
// which then connects to another device.
func TestFollowerOfQueuePairThatConnectsElsewhere(t *testing.T) {
	d, a := dialing(t)
	other := newNode(t, 64, driver.AllAccess)
	for other.id < d.id {
		other = newNode(t, 64, driver.AllAccess)
	}
	leader, r := d.newQP(4), d.newQP(4)
	silent, pr, po := a.newQP(4), a.newQP(4), other.newQP(4)
	connect(t, leader, silent.Address())
	connect(t, r, pr.Address())
	connect(t, pr, r.Address())
	renew(t, leader)
	connect(t, leader, po.Address())
	connect(t, po, leader.Address())
	settled(t, d, other, leader)
	works(t, d, a, r)
	d.token.Lock()
	defer d.token.Unlock()
	require.Equal(t, streamFree, leader.link.streams[second].state, "the other device was asked")
}

func TestConnectionLostWhileAnotherJoins(t *testing.T) {
	d, a, _, qa := dialed(t)
	rd, ra := d.newQP(8), a.newQP(8)
	connect(t, rd, ra.Address())
	eventually(t, "the peer to hear of it", func() bool {
		a.token.Lock()
		defer a.token.Unlock()
		return len(ra.parked) == 1
	})
	parked := 1
	a.hears(qa, func(l *link) {
		l.lost(errSilent)
		parked = len(ra.parked) // before the peer dials again
	})
	require.Zero(t, parked)
	connect(t, ra, rd.Address())
	works(t, d, a, rd)
}
