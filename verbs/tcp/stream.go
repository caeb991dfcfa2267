//go:build linux

package tcp

import (
	"math"
	"slices"
)

// lastStream is the greatest number of a stream. A connection that has used it up gets no
// further stream.
const lastStream = math.MaxUint32

// A stream is one queue pair's part of a connection. Its number is never used again. So
// both ends tell the late frames of a stream that has ended from those of another.
type stream struct {
	id                   uint32
	link                 *link
	q                    *qp
	state                streamState
	acceptorQP, dialerQP uint32
}

// A streamState says how far a stream has come. Streams that have ended have none.
type streamState uint8

const (
	streamRequested streamState = iota // the dialer has sent OPEN
	streamOffered                      // acceptor: OPENED was sent
	streamLive                         // frames flow
)

// newStream makes the next stream of l, for q.
func (l *link) newStream(q *qp) *stream {
	s := &stream{id: l.next, link: l, q: q}
	l.next++
	l.streams = append(l.streams, s)
	return s
}

// find returns a stream that has not ended, or nil. A connection has few.
func (l *link) find(id uint32) *stream {
	for _, s := range l.streams {
		if s.id == id {
			return s
		}
	}
	return nil
}

// late reports whether a frame's stream has ended. s is the stream, or nil.
func (l *link) late(f *frame, s *stream) bool {
	if s == nil {
		return f.stream < l.next
	}
	return !l.outgoing && s.state != streamLive && !slices.Contains(s.q.openings, s) // declined
}

// remove takes an ended stream off its connection.
func (s *stream) remove() {
	l := s.link
	l.streams = slices.DeleteFunc(l.streams, func(x *stream) bool { return x == s })
}

// established makes frames of s flow. Precondition: token and lock are held.
func (l *link) established(s *stream) {
	q := s.q
	s.state, q.stream, q.link = streamLive, s, l
	if l.phase != phaseStream {
		if l.timer != nil {
			l.timer.Stop()
		}
		l.phase = phaseStream
		l.dev.flowing++
		l.dev.hot = nil
	}
	if tell := q.tell; tell != nil {
		q.tell = nil
		l.dev.goes.Go(tell)
	}
	q.stopWaiting()
	q.path.renew()
	q.path.settle()
	l.guard()
	q.rq.reconnect()
	q.ackDue = q.rq.Len() > 0
	l.flush()
}

// stopWaiting ends q's wait for its peer, and declines all streams but that of q.
func (q *qp) stopWaiting() {
	if q.timer != nil {
		q.timer.Stop()
	}
	for _, s := range q.openings {
		if s != q.stream {
			q.dev.decline(s)
		}
	}
	q.openings = nil
}

// disconnect ends q's stream, or its attempts to connect. Precondition: token and q's
// lock are held.
func (q *qp) disconnect() {
	s := q.stream
	q.stream, q.link = nil, nil
	q.stopWaiting()
	if s != nil {
		s.leave()
	}
	if q.path != nil {
		q.path.unbind(q)
	}
}

// leave ends a stream and tells the peer. It closes a connection without streams.
func (s *stream) leave() {
	l, q := s.link, s.q
	s.remove()
	q.responses.clear()
	q.pending, q.message = 0, 0
	l.in.release(q)
	if !l.up() {
		return
	}
	l.out.detach(func(p *piece) bool { return p.q == q })
	l.end(s.id)
	if len(l.streams) == 0 {
		l.close()
		return
	}
	l.guard()
	l.flush()
}

// end tells the peer that a stream is over.
func (l *link) end(id uint32) { l.out.put(&frame{kind: kindEnd, stream: id}) }

// lost ends the connection and all its streams. Precondition: token and lock are held.
func (l *link) lost(cause error) {
	closing := l.phase == phaseClosing
	l.drop()
	streams := l.streams
	l.streams = nil
	for _, s := range streams {
		switch {
		case s.state == streamLive:
			s.q.lost(cause)
			s.q.disconnect()
		case l.outgoing:
			s.q.stream = nil
		default:
			s.forget()
		}
	}
	if l.outgoing && !closing {
		l.path.redial(cause)
	}
}

// peerEnded handles the peer's END of a stream.
func (l *link) peerEnded(id uint32) error {
	s := l.find(id)
	switch {
	case s == nil && id >= l.next:
		return errProtocol
	case s == nil:
		return nil
	case s.state == streamLive:
		s.q.lost(errPeerClosed)
		s.q.disconnect()
		return nil
	case l.outgoing:
		s.q.stream = nil
		l.path.rest()
	default:
		s.forget()
	}
	s.remove()
	if len(l.streams) == 0 {
		l.close()
	}
	return nil
}
