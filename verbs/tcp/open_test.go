package tcp

import (
	"encoding/binary"
	"io"
	"slices"
	"sync"
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
	i.frame(frame{kind: kindWrite, stream: stream, flags: flagLast | flagAsk, length: 8, addr: n.mr.Addr(), key: n.mr.RKey()}, word...)
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

// TestFurtherStreamNeedsThePeersSecret knows the secret of one queue pair of two.
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

// TestOpenedWithWrongMACIsRefused answers a queue pair without its secret.
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
		require.Equal(t, streamAsked, l.find(1).state)
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

// waiting returns the streams that wait for q.
func (q *qp) waiting() []*stream {
	q.dev.token.Lock()
	defer q.dev.token.Unlock()
	return slices.Clone(q.openings)
}

// TestQueuePairThatGivesUpIsNotOpenedLater resets a queue pair that waits for its
// peer's response.
func TestQueuePairThatGivesUpIsNotOpenedLater(t *testing.T) {
	for range 20 {
		a, b, qa, qb := pair(t, 64)
		settled(t, a, b, qa)
		ra, rb := a.newQP(8), b.newQP(8)
		connect(t, ra, rb.Address())
		if a.id < b.id { // else it waits and sends nothing
			eventually(t, "the peer to hear of it", func() bool { return len(rb.waiting()) == 1 })
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

// dialed returns two such nodes with a connection that further queue pairs may use.
func dialed(t *testing.T) (d, a *node, qd, qa *qp) {
	d, a = dialing(t)
	qd, qa = d.newQP(8), a.newQP(8)
	connect(t, qd, qa.Address())
	connect(t, qa, qd.Address())
	settled(t, d, a, qd)
	return d, a, qd, qa
}

func TestQueuePairsThatConnectAtOnceShare(t *testing.T) {
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
		require.Same(t, qa.connection(), ra.connection())
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	}
}

// TestStreamOpensDuringRefusal opens a stream of a connection that the peer has just
// refused a request on.
func TestStreamOpensDuringRefusal(t *testing.T) {
	d, a, qd, qa := dialed(t)
	rd, ra := d.newQP(8), a.newQP(8)
	connect(t, ra, rd.Address())
	address, wrong := ra.Address(), a.at(0)
	wrong.RKey.Lo++

	resume := d.stall()
	post(t, qd, driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(make([]byte, 16)), Remote: wrong})
	eventually(t, "the refusal", func() bool { return qa.currentState() == driver.StateErr })
	rd.lock()
	require.NoError(t, rd.connect(address))
	rd.start(0)
	require.NotNil(t, rd.stream)
	rd.unlock()
	resume()
	require.Equal(t, driver.RemoteAccess, d.next().Status)
	works(t, d, a, rd)
	require.Equal(t, driver.StateRTS, ra.currentState())
}

// TestBothEndsLeaveStreamAfterRefusals makes each end refuse a request before it learns
// that its own was refused. Both leave the stream.
func TestBothEndsLeaveStreamAfterRefusals(t *testing.T) {
	a, b, wrong, other := duo(t, 64)
	resume := [2]func(){a.stall(), b.stall()}
	for i, n := range []*node{a, b} {
		to := []*node{b, a}[i].at(0)
		to.RKey.Lo++
		post(t, wrong[i], driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(make([]byte, 16)), Remote: to})
		n.flushWaiting()
	}
	resume[0]()
	resume[1]()
	for _, n := range []*node{a, b} {
		require.NotEqual(t, driver.Success, n.next().Status)
		require.Equal(t, driver.EventQPFatal, n.event().Kind)
	}
	goesOn(t, a, b, other)
	for _, q := range wrong {
		eventually(t, "the stream to be left", func() bool { return q.connection() == nil })
	}
}

// TestQueuePairUnknownToPeerDelaysNoOther dials first for a queue pair that the peer's
// device does not have.
func TestQueuePairUnknownToPeerDelaysNoOther(t *testing.T) {
	for range 10 {
		d, v := dialing(t)
		claimed := address{qp: 99, token: token{7}, device: v.id, endpoints: v.endpoints}
		mine, rd, rv := d.newQP(4), d.newQP(4), v.newQP(4)
		connect(t, mine, claimed.encode())
		connect(t, rd, rv.Address())
		connect(t, rv, rd.Address())
		works(t, d, v, rd)
		works(t, v, d, rv)
		require.Equal(t, driver.StateRTS, mine.currentState(), "it goes on until its time is over")
	}
}

// TestQueuePairGetsAnotherConnectionWithoutNumbers uses up the numbers of a
// connection's streams. The next queue pair gets another connection.
func TestQueuePairGetsAnotherConnectionWithoutNumbers(t *testing.T) {
	d, a, qd, qa := dialed(t)
	l := qd.connection()
	for _, q := range []*qp{qd, qa} {
		q.lock()
		q.link.next = lastStream - 1
		q.unlock()
	}
	rd, ra := d.newQP(4), a.newQP(4)
	connect(t, rd, ra.Address())
	connect(t, ra, rd.Address())
	works(t, d, a, rd)
	require.Same(t, l, rd.connection())
	require.NoError(t, rd.Close())
	rd, ra = d.newQP(4), a.newQP(4)
	connect(t, rd, ra.Address())
	connect(t, ra, rd.Address())
	works(t, d, a, rd)
	require.NotSame(t, l, rd.connection())
	works(t, d, a, qd)
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

func TestQueuePairOpensAgainAfterLostConnection(t *testing.T) {
	d, a, _, qa := dialed(t)
	rd, ra := d.newQP(8), a.newQP(8)
	connect(t, rd, ra.Address())
	eventually(t, "the peer to hear of it", func() bool { return len(ra.waiting()) == 1 })
	openings := 1
	a.hears(qa, func(l *link) {
		l.lost(errSilent)
		openings = len(ra.openings) // before the peer dials again
	})
	require.Zero(t, openings)
	connect(t, ra, rd.Address())
	works(t, d, a, rd)
}
