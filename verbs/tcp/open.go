//go:build linux

package tcp

import (
	"crypto/hmac"
	"encoding/binary"
	"slices"

	"github.com/gopgas/gopgas/verbs/driver"
)

// This file opens streams, as the package comment shows: OPEN, OPENED, PROOF. link.begin calls
// control for each frame that is no request and no response. Precondition of all functions of a
// link or a stream: token and lock are held.
//
//	dialer     newStream, request       opened, established
//	                    | OPEN           ^ OPENED  | PROOF
//	acceptor            +-> requested, admit       +-> proven, established
//
// A stream whose queue pair does not know its peer yet waits between requested and admit.

// control handles a frame about streams; b is the whole frame.
func (l *link) control(f *frame, b []byte) error {
	switch f.kind {
	case kindHello:
		return l.greeted(f, b)
	case kindEnd:
		return l.peerEnded(f.stream)
	case kindOpen:
		return l.requested(f, b)
	}
	s := l.find(f.stream)
	switch {
	case l.late(f, s):
		return nil // the queue pair did not wait
	case s != nil && f.kind == kindOpened && l.outgoing && l.phase != phaseHello && s.state == streamRequested:
		return l.opened(s, b[offMAC:])
	case s != nil && f.kind == kindProof && s.state == streamOffered:
		return l.proven(s, b[offMAC:])
	}
	return errProtocol
}

// request opens a stream for q. It tells the acceptor that this side knows the secret of
// the acceptor's queue pair.
func (l *link) request(q *qp) {
	s := l.newStream(q)
	s.acceptorQP, s.dialerQP = q.peer.qp, q.num
	q.stream = s
	s.put(kindOpen, q.peer.token)
}

// put queues an OPEN, OPENED or PROOF, which prove the knowledge of secrets.
func (s *stream) put(k kind, secrets ...token) {
	b := s.link.out.extend(headerSizes[k])
	(&frame{kind: k, stream: s.id}).encode(b)
	copy(b[offMAC:], s.mac(k, secrets...))
	if k == kindOpen {
		binary.LittleEndian.PutUint32(b[offOpenAcceptor:], s.acceptorQP)
		binary.LittleEndian.PutUint32(b[offOpenDialer:], s.dialerQP)
	}
}

// requested handles a dialer's OPEN of a stream. If the first OPEN of a connection is wrong,
// the device cuts the connection and tells the dialer nothing. It refuses a later wrong OPEN
// by an END. It also cuts a dialer that does not read the responses. If the queue pair does
// not know its peer yet, the stream waits among the queue pair's openings.
func (l *link) requested(f *frame, b []byte) error {
	if l.outgoing || l.phase < phaseOpen || f.stream != l.next || l.next == lastStream || l.out.queued > controlMax {
		return errProtocol
	}
	acceptorQP, dialerQP := binary.LittleEndian.Uint32(b[offOpenAcceptor:]), binary.LittleEndian.Uint32(b[offOpenDialer:])
	q := l.dev.queuePair(acceptorQP)
	s := l.newStream(q)
	s.acceptorQP, s.dialerQP = acceptorQP, dialerQP
	stranger := slices.Contains(l.dev.strangers, l) // no OPEN of this connection was right yet
	// A queue pair without a stream changes its state only while the token is held.
	if q == nil || q.stream != nil || q.state == driver.StateErr || !hmac.Equal(b[offMAC:offOpenAcceptor], s.mac(kindOpen, q.secret)) {
		s.remove()
		if stranger {
			return errUnproven
		}
		l.end(s.id)
		return nil
	}
	if stranger {
		l.dev.strangers = remove(l.dev.strangers, l)
		l.greet(&l.acceptor)
	}
	if l.phase != phaseStream {
		l.expire(q.timeout)
	}
	q.await(s)
	if q.path == nil {
		l.dev.comesEarly(l)
		return nil
	}
	if l.path == nil {
		q.path.mu.Lock() // the token is held: see path.bind
		l.belongs(q.path)
	}
	q.admit(s)
	return nil
}

// await puts s among the streams that wait for q to know its peer. It declines the oldest one if
// there are too many.
func (q *qp) await(s *stream) {
	if len(q.openings) == maxOpenings {
		s.link.dev.decline(q.openings[0])
		q.openings = slices.Delete(q.openings, 0, 1)
	}
	q.openings = append(q.openings, s)
}

// comesEarly keeps a connection whose streams are all for queue pairs in INIT. If there are
// too many, the device cuts the oldest one, whose dialer dials again. So a peer that
// knows many queue pairs does not take all descriptors.
func (d *device) comesEarly(l *link) {
	if l.path != nil || slices.Contains(d.early, l) {
		return
	}
	if d.early = append(d.early, l); len(d.early) > maxEarly {
		d.early[0].lost(errSilent)
	}
}

// belongs makes p the path of an accepted connection.
func (l *link) belongs(p *path) {
	l.path = p
	l.dev.early = remove(l.dev.early, l)
}

// admitAll admits the streams that were opened before q knew its peer. q calls it on its way to RTR.
// Precondition: token and q's lock are held.
func (q *qp) admitAll() {
	for _, s := range slices.Clone(q.openings) {
		l := s.link
		if l.path == nil {
			l.belongs(q.path)
		}
		q.admit(s)
		if l.path == q.path {
			l.flush()
		}
	}
}

// admit offers a stream to the peer, and declines one of another dialer. Precondition: token and q's
// lock are held.
func (q *qp) admit(s *stream) {
	l := s.link
	if l.path != q.path || q.path.key.dials || q.peer.qp != s.dialerQP {
		s.forget()
		l.dev.decline(s)
		return
	}
	s.state = streamOffered
	s.put(kindOpened, q.secret, q.peer.token)
}

// opened checks that the acceptor knows both secrets. It sends the dialer's proof, and
// frames right behind.
func (l *link) opened(s *stream, mac []byte) error {
	q := s.q
	if !hmac.Equal(mac, s.mac(kindOpened, q.peer.token, q.secret)) {
		return errUnproven
	}
	s.put(kindProof, q.peer.token, q.secret)
	l.established(s)
	return nil
}

// proven checks the dialer's proof; from here on the dialer is the peer.
func (l *link) proven(s *stream, mac []byte) error {
	if !hmac.Equal(mac, s.mac(kindProof, s.q.secret, s.q.peer.token)) {
		return errUnproven
	}
	l.established(s)
	return nil
}

// forget takes s off the streams that wait for its queue pair.
func (s *stream) forget() {
	s.q.openings = slices.DeleteFunc(s.q.openings, func(x *stream) bool { return x == s })
}

// decline refuses a stream that a dialer has opened, and that no longer waits for its
// queue pair. The dialer learns of it when the token is given back, since the stream's
// connection may have another lock.
func (d *device) decline(s *stream) { d.declined = append(d.declined, s) }

// settle tells dialers of the streams that were declined. Precondition: the token is held,
// and no lock of a path.
func (d *device) settle() {
	for _, s := range d.declined {
		l := s.link
		l.lock()
		if l.up() && l.find(s.id) == s {
			s.remove()
			l.end(s.id)
			if len(l.streams) == 0 {
				l.close()
			} else {
				l.flush()
			}
		}
		l.unlock()
	}
	clear(d.declined)
	d.declined = d.declined[:0]
}

// leave gives the token back, and rings the bell when there is news.
func (d *device) leave() {
	if len(d.declined) > 0 {
		d.settle()
	}
	d.token.Unlock()
	d.ring()
}
