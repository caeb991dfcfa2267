package tcp

import (
	"crypto/hmac"
	"encoding/binary"
	"slices"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
)

// followFor bounds how long a queue pair waits for the connection of another one to the
// same device. It then makes its own.
const followFor = 100 * time.Millisecond

// A joinRequest asks for a stream for a second queue pair of the dialer. It is a hello
// and a proof at once, since both ends know both nonces.
type joinRequest struct {
	acceptorQP, dialerQP uint32
	hello, proof         [macSize]byte
}

// These are the offsets of the fields of kindJoin and kindJoined behind the first eight
// bytes.
const (
	offJoinAcceptor = 8
	offJoinDialer   = 12
	offJoinHello    = 16
	offJoinProof    = offJoinHello + macSize
	joinSize        = offJoinProof + macSize
	offJoinedMAC    = 8
	joinedSize      = offJoinedMAC + macSize
)

// joinMAC returns a MAC of the second queue pair's handshake, for the given numbers and
// the nonces of the first handshake.
func (l *link) joinMAC(label string, acceptorQP, dialerQP uint32, secrets ...token) []byte {
	h := handshake{dialer: l.hs.dialer, acceptor: l.hs.acceptor, acceptorQP: acceptorQP, dialerQP: dialerQP}
	return h.mac(label, secrets...)
}

// seek finds q a connection to its peer's device: that of an earlier queue pair, if it
// has a free stream, or one of its own. Precondition: token and q's lock are held.
func (q *qp) seek() {
	d, device := q.dev, q.peer.device
	if device == d.id {
		q.dial()
		return
	}
	leader := d.leaders[device]
	if leader == nil || !q.mayJoin(leader) {
		d.leaders[device] = q
		q.dial()
		return
	}
	delete(d.leaders, device)
	if leader.link != nil {
		q.join(leader.link)
		return
	}
	leader.follower, q.dialing.leader = q, leader
	q.dialing.timer = q.afterwards(followFor, func() {
		if q.dialing.leader != leader {
			return // it runs again: the timer was reset while f waited for the locks
		}
		q.unfollow()
		if leader.link != nil && q.mayJoin(leader) {
			q.join(leader.link)
			return
		}
		q.dial()
	})
}

// mayJoin reports whether the peers of leader and q are on the same device. The device's
// number alone does not prove that: a peer may claim any number, but cannot listen at
// another's endpoints.
func (q *qp) mayJoin(leader *qp) bool {
	return leader.peer.device == q.peer.device && slices.Equal(leader.peer.endpoints, q.peer.endpoints)
}

// unfollow ends the wait for another queue pair's connection.
func (q *qp) unfollow() {
	if h := q.dialing.leader; h != nil && h.follower == q {
		h.follower = nil
	}
	q.dialing.leader = nil
}

// leadOn makes the queue pair that waits for q's connection seek again: the connection
// is established, or will not be.
func (q *qp) leadOn() {
	if f := q.follower; f != nil {
		q.follower = nil
		f.dialing.timer.Reset(0)
	}
}

// join requests the second stream of l, or dials if there is none.
func (q *qp) join(l *link) {
	q.share(&l.mu)
	if !l.up() || l.shut || !l.outgoing || l.streams[second].state != streamFree {
		q.dial()
		return
	}
	l.streams[second] = stream{state: streamJoining, q: q}
	q.dialing.joins = l
	q.dialing.timer = q.afterwards(time.Until(q.dialing.until), func() { q.unreachable(errSilent) })
	acceptor, dialer := q.peer.qp, q.num
	b := l.out.extend(joinSize)
	(&frame{kind: kindJoin, stream: second}).encode(b)
	binary.LittleEndian.PutUint32(b[offJoinAcceptor:], acceptor)
	binary.LittleEndian.PutUint32(b[offJoinDialer:], dialer)
	copy(b[offJoinHello:], l.joinMAC("join", acceptor, dialer, q.peer.token))
	copy(b[offJoinProof:], l.joinMAC("join proof", acceptor, dialer, q.peer.token, q.secret))
	l.flush()
}

// turnedAway makes q go on without l; a dialer then dials.
func (q *qp) turnedAway(l *link) {
	q.parked = remove(q.parked, l)
	if q.dialing.joins == l {
		q.dialing.joins = nil
		q.dialing.timer.Stop()
		q.dial()
	}
}

// control handles a frame about streams; b is the whole frame. Precondition: token and mu
// are held.
func (l *link) control(f *frame, b []byte) error {
	stream := &l.streams[f.stream]
	switch {
	case f.kind == kindEnd:
		return l.peerEnded(f.stream)
	case f.kind == kindJoin && f.stream == second && !l.outgoing && stream.state == streamFree:
		l.asked = joinRequest{acceptorQP: binary.LittleEndian.Uint32(b[offJoinAcceptor:]), dialerQP: binary.LittleEndian.Uint32(b[offJoinDialer:])}
		copy(l.asked.hello[:], b[offJoinHello:])
		copy(l.asked.proof[:], b[offJoinProof:])
		l.requested()
		return nil
	case f.kind == kindJoined && l.outgoing && stream.state == streamJoining:
		q := stream.q
		if !hmac.Equal(b[offJoinedMAC:joinedSize], l.joinMAC("joined", q.peer.qp, q.num, q.peer.token, q.secret)) {
			return errUnproven
		}
		l.established(q, second)
		return nil
	case f.kind == kindJoined && stream.state == streamOver:
		return nil // the queue pair did not wait
	}
	return errProtocol
}

// requested finds the queue pair of a join request. A dialer that does not know its
// secret learns only that the request is refused.
func (l *link) requested() {
	a := &l.asked
	q := l.dev.queuePair(a.acceptorQP)
	if q == nil || l.shut || q.link != nil || q.dialing.joins != nil || !hmac.Equal(a.hello[:], l.joinMAC("join", a.acceptorQP, a.dialerQP, q.secret)) {
		l.turnAway()
		return
	}
	l.adopt(q)
	q.admit(l)
}

// admit connects q with the peer's queue pair, or parks the request until q knows its
// peer. Precondition: the token is held, and l.mu is the lock of q, which is on no
// connection.
func (q *qp) admit(l *link) {
	a := &l.asked
	switch {
	case q.state == driver.StateErr:
		l.turnAway()
	case q.state == driver.StateReset || q.state == driver.StateInit:
		l.streams[second] = stream{state: streamJoining, q: q}
		q.park(l)
	case q.peer.qp != a.dialerQP || !hmac.Equal(a.proof[:], l.joinMAC("join proof", a.acceptorQP, a.dialerQP, q.secret, q.peer.token)):
		l.turnAway()
	default:
		b := l.out.extend(joinedSize)
		(&frame{kind: kindJoined, stream: second}).encode(b)
		copy(b[offJoinedMAC:], l.joinMAC("joined", a.acceptorQP, a.dialerQP, q.secret, q.peer.token))
		l.established(q, second)
	}
}

// turnAway refuses the second stream. Precondition: token and mu are held.
func (l *link) turnAway() {
	l.streams[second] = stream{state: streamOver}
	l.end(second)
	if !l.occupied() {
		l.hangUp()
		return
	}
	l.flush()
}
