package tcp

import (
	"sync"

	"github.com/gopgas/gopgas/verbs/driver"
)

// maxStreams is the number of queue pairs that a connection carries at each end. A rank
// has two for a peer: it posts on one, and the peer posts on its partner. On one
// connection, data of one direction carries TCP's acknowledgements of the reverse one;
// two would send packets for them alone. More streams would wait for each other's
// payloads.
const maxStreams = 2

// second is the stream of the queue pair that joins a connection.
const second = 1

// A stream is one queue pair's part of a connection. It is never used again: late frames
// would reach the next queue pair.
type stream struct {
	state streamState
	q     *qp // while joining or live
}

type streamState uint8

const (
	streamFree streamState = iota
	streamJoining
	streamLive
	streamOver
)

// lock takes the lock that guards q. The lock is that of the connection once q is on
// one. It changes only while the device's token is held.
func (q *qp) lock() {
	for {
		m := q.mu.Load()
		m.Lock()
		if q.mu.Load() == m {
			return
		}
		m.Unlock()
	}
}

func (q *qp) unlock() { q.mu.Load().Unlock() }

// share makes m the lock of q, and locks m in place of the former lock. A goroutine
// that holds two of these locks also holds the token, so there is no deadlock.
func (q *qp) share(m *sync.Mutex) {
	old := q.mu.Load()
	if old == m {
		return
	}
	m.Lock()
	q.mu.Store(m)
	old.Unlock()
}

// adopt makes l's lock, which is held, the lock of q.
func (l *link) adopt(q *qp) {
	if old := q.mu.Load(); old != &l.mu {
		old.Lock()
		q.mu.Store(&l.mu)
		old.Unlock()
	}
}

// established gives q a stream of l. Precondition: the token is held, and l.mu is the lock
// of q.
func (l *link) established(q *qp, i int) {
	if q.dialing.link == l {
		q.dialing.link = nil
	}
	if q.dialing.joins == l {
		q.dialing.joins = nil
	}
	q.stopDialing()
	l.streams[i] = stream{state: streamLive, q: q}
	q.link, q.stream = l, uint8(i)
	l.guard()
	q.rq.reconnect()
	q.ackDue = q.rq.Len() > 0
	l.flush()
}

// started begins the flow of frames, those of q first. Precondition: token and q's lock
// are held.
func (l *link) started(q *qp) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.phase, l.q = phaseStream, nil
	l.dev.flowing++
	l.dev.hot = nil
	q.share(&l.mu)
	l.established(q, 0)
}

// leave takes q off its stream, and closes a connection without queue pairs. Precondition:
// token and mu are held.
func (l *link) leave(q *qp) {
	l.streams[q.stream] = stream{state: streamOver}
	q.link = nil
	q.answers.clear()
	q.pending, q.message = 0, 0
	l.in.release(q)
	switch {
	case !l.up():
		return
	case !l.occupied():
		l.hangUp()
		return
	}
	l.out.detach(func(p *piece) bool { return p.q == q })
	l.end(q.stream)
	l.guard()
	l.flush()
}

// hangUp closes a connection without queue pairs, after one more write of its queued
// frames.
func (l *link) hangUp() {
	if !l.out.empty() && !l.out.broken {
		l.out.write(l.fd)
	}
	l.drop()
}

// end tells the peer that a stream is over.
func (l *link) end(stream uint8) { l.out.put(&frame{kind: kindEnd, stream: stream}) }

// occupied reports whether any queue pair is on the connection or joining it.
func (l *link) occupied() bool {
	for i := range l.streams {
		if l.streams[i].q != nil {
			return true
		}
	}
	return false
}

// needed reports whether a queue pair on this connection is not in ERR, or is still
// joining.
func (l *link) needed() bool {
	for i := range l.streams {
		if q := l.live(i); q != nil && q.state != driver.StateErr || l.streams[i].state == streamJoining {
			return true
		}
	}
	return false
}

// live returns the queue pair of a stream on which frames flow, or nil.
func (l *link) live(i int) *qp {
	if l.streams[i].state != streamLive {
		return nil
	}
	return l.streams[i].q
}

// lost ends all queue pairs of the connection. Precondition: token and mu are held.
func (l *link) lost(cause error) {
	l.drop()
	for i := range l.streams {
		q := l.streams[i].q
		state := l.streams[i].state
		l.streams[i] = stream{state: streamOver}
		switch state {
		case streamLive:
			q.lost(cause)
			q.disconnect()
		case streamJoining:
			q.turnedAway(l)
		}
	}
}

// peerEnded handles the peer's END of a stream.
func (l *link) peerEnded(i uint8) error {
	q := l.streams[i].q
	switch l.streams[i].state {
	case streamFree:
		return errProtocol
	case streamJoining:
		l.streams[i] = stream{state: streamOver}
		q.turnedAway(l)
		if !l.occupied() {
			l.drop()
		}
	case streamLive:
		q.lost(errPeerClosed)
		q.disconnect()
	}
	return nil
}
