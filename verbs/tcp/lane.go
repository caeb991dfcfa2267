package tcp

import (
	"sync"

	"github.com/gopgas/gopgas/verbs/driver"
)

// maxLanes is how many queue pairs a connection carries at each end. Two: who talks to
// a peer has a queue pair to post on, and one that the peer posts on. On one connection
// what goes one way acknowledges what came the other way, where two would exchange
// packets for that alone. More would wait for each other's payloads.
const maxLanes = 2

// second is the lane of the queue pair that joins a connection.
const second = 1

// A lane is one queue pair's part of a connection. It is never used again: late frames
// would be taken for those of the next.
type lane struct {
	state laneState
	q     *qp // while joining or live
}

type laneState uint8

const (
	laneFree laneState = iota
	laneJoining
	laneLive
	laneOver
)

// lock takes the lock that guards q. It is another one once q is on a connection, and
// changes with the device's token held only.
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

// share has m guard q from here on; it is locked in place of the lock that was. Who
// holds two of these locks holds the token, so that none wait for each other.
func (q *qp) share(m *sync.Mutex) {
	old := q.mu.Load()
	if old == m {
		return
	}
	m.Lock()
	q.mu.Store(m)
	old.Unlock()
}

// adopt has l's lock, which is held, guard q from here on.
func (l *link) adopt(q *qp) {
	if old := q.mu.Load(); old != &l.mu {
		old.Lock()
		q.mu.Store(&l.mu)
		old.Unlock()
	}
}

// established gives q a lane of l. Called with the token held, and l.mu as the lock of q.
func (l *link) established(q *qp, i int) {
	if q.dialing.link == l {
		q.dialing.link = nil
	}
	if q.dialing.joins == l {
		q.dialing.joins = nil
	}
	q.stopDialing()
	l.lanes[i] = lane{state: laneLive, q: q}
	q.link, q.lane = l, uint8(i)
	l.guard()
	q.rq.reconnect()
	q.ackDue = q.rq.Len() > 0
	l.flush()
}

// started begins to let frames flow, those of q first. Called with token and q's lock.
func (l *link) started(q *qp) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.phase, l.q = phaseStream, nil
	l.dev.streams++
	l.dev.hot = nil
	q.share(&l.mu)
	l.established(q, 0)
}

// leave takes q off its lane, and closes a connection that carries no other. Called with
// token and mu held.
func (l *link) leave(q *qp) {
	l.lanes[q.lane] = lane{state: laneOver}
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
	l.end(q.lane)
	l.guard()
	l.flush()
}

// hangUp closes a connection that carries nobody; what is queued is offered to the socket
// once more.
func (l *link) hangUp() {
	if !l.out.empty() && !l.out.broken {
		l.out.write(l.fd)
	}
	l.drop()
}

// end tells the peer that a lane is over.
func (l *link) end(lane uint8) { l.out.put(&frame{kind: kindEnd, lane: lane}) }

// occupied tells whether any queue pair is on the connection or about to be.
func (l *link) occupied() bool {
	for i := range l.lanes {
		if l.lanes[i].q != nil {
			return true
		}
	}
	return false
}

// needed tells whether any queue pair has more to do than to tell why it ended.
func (l *link) needed() bool {
	for i := range l.lanes {
		if q := l.live(i); q != nil && q.state != driver.StateErr || l.lanes[i].state == laneJoining {
			return true
		}
	}
	return false
}

// live is the queue pair whose frames flow on a lane, or nil.
func (l *link) live(i int) *qp {
	if l.lanes[i].state != laneLive {
		return nil
	}
	return l.lanes[i].q
}

// lost ends all that the connection carries. Called with token and mu held.
func (l *link) lost(cause error) {
	l.drop()
	for i := range l.lanes {
		q := l.lanes[i].q
		state := l.lanes[i].state
		l.lanes[i] = lane{state: laneOver}
		switch state {
		case laneLive:
			q.lost(cause)
			q.disconnect()
		case laneJoining:
			q.turnedAway(l)
		}
	}
}

// peerEnded hears that the peer has nothing more to do with a lane.
func (l *link) peerEnded(i uint8) error {
	q := l.lanes[i].q
	switch l.lanes[i].state {
	case laneFree:
		return errProtocol
	case laneJoining:
		l.lanes[i] = lane{state: laneOver}
		q.turnedAway(l)
		if !l.occupied() {
			l.drop()
		}
	case laneLive:
		q.lost(errPeerClosed)
		q.disconnect()
	}
	return nil
}
