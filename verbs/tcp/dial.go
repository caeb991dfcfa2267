//go:build linux

package tcp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

// These are the pauses between two rounds through the peer's endpoints.
const (
	firstPause = 5 * time.Millisecond
	firstProbe = 50 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// connectTimeout bounds one attempt where the peer has further endpoints to try. TCP
// sends its first packet again after a second.
const connectTimeout = 2 * time.Second

// connect starts to connect q with its peer. The device with the lower number dials. So
// all queue pairs of two devices look at the same one for a connection to share. On one
// device, the queue pair with the lower secret dials. Precondition: token and q's lock
// are held.
func (q *qp) connect(peer []byte) error {
	to, err := decodeAddress(peer)
	if err != nil {
		return err
	}
	if to.tls != (q.dev.tls != nil) {
		return &TLSError{Peer: to.endpoints[0], Handshake: true, Err: errTLSDiffers}
	}
	order := cmp.Or(cmp.Compare(q.dev.id, to.device), bytes.Compare(q.secret[:], to.token[:]))
	if order == 0 {
		return q.connectSelf(to)
	}
	p := q.dev.path(&to, order < 0)
	if err := p.keepSpare(q); err != nil {
		p.end()
		return fmt.Errorf("tcp: connecting queue pair %d: %w", q.num, err)
	}
	p.bind(q)
	q.peer, q.state = to, driver.StateRTR
	q.timer = q.afterward(q.timeout, func() { q.unreachable(p.failure) })
	q.admitAll()
	switch {
	case !p.key.dials:
		p.rest()
	case p.resting:
		p.wake()
		p.pause = firstPause
		p.again()
	default:
		p.seek()
	}
	return nil
}

// afterward runs f with token and lock, unless q is connected by then.
func (q *qp) afterward(pause time.Duration, f func()) *time.Timer {
	secret := q.secret
	return time.AfterFunc(pause, func() {
		q.dev.token.Lock()
		defer q.dev.leave()
		q.lock()
		defer q.unlock()
		if q.connecting() && q.secret == secret {
			f()
		}
	})
}

// connectSelf connects q with itself. Its path has no other queue pair.
func (q *qp) connectSelf(to address) error {
	fd, err := dialSelf()
	if err == nil {
		p := &path{dev: q.dev}
		var l *link
		if l, err = q.dev.addLink(fd, p, phaseOpen, unix.EPOLLIN); err == nil {
			p.bind(q)
			q.peer, q.state = to, driver.StateRTR
			l.established(l.newStream(q))
			return nil
		}
	}
	return fmt.Errorf("tcp: connecting queue pair %d with itself: %w", q.num, memory.Descriptors(err))
}

// seek opens streams for the queue pairs that wait, and dials if there is no room for
// one of them. Precondition: token and lock are held, and this side dials.
func (p *path) seek() {
	for _, q := range p.qps {
		if !q.seeking() {
			continue
		}
		l := p.room(q)
		if l == nil {
			if p.attempt == nil {
				p.dial()
			}
			break
		}
		l.request(q)
	}
	for _, l := range p.links {
		l.flush()
	}
}

// room returns a connection that may get a stream for q, or nil. A queue pair that needs a
// connection of its own gets one without streams.
func (p *path) room(q *qp) *link {
	for _, l := range p.links {
		most := p.dev.streams
		if q.apart || slices.ContainsFunc(l.streams, func(s *stream) bool { return s.q.apart }) {
			most = 1
		}
		if len(l.streams) < most && l.next < lastStream {
			return l
		}
	}
	return nil
}

// dial tries the peer's endpoints from the next one on. It skips an endpoint that fails
// at once, and pauses after the last one.
func (p *path) dial() {
	for p.next < len(p.endpoints) {
		p.tried = p.next
		to := p.endpoints[p.tried]
		p.next++
		congestion := ""
		if p.dev.within(to.Addr()) {
			congestion = unpaced
		}
		fd, err := dial(to, congestion)
		if exhausted(err) && (p.giveSpare() || p.dev.cutStranger()) {
			fd, err = dial(to, congestion)
		}
		if exhausted(err) {
			p.unreachable(memory.Descriptors(err))
			return
		}
		if err == nil {
			p.attempt, err = p.dev.addLink(fd, p, phaseDial, unix.EPOLLOUT)
		}
		if err == nil {
			p.attempt.expire(p.patience())
			return
		}
		p.failed(err)
	}
	p.rest()
}

// patience returns the bound of one attempt to connect.
func (p *path) patience() time.Duration {
	if len(p.endpoints) > 1 {
		return connectTimeout
	}
	return handshakeTimeout
}

// redial follows a failed attempt. The first queue pair that waits for a connection
// becomes the last. So one that the peer does not know delays the others once.
func (p *path) redial(cause error) {
	if !p.waits() {
		return
	}
	p.failed(cause)
	if i := slices.IndexFunc(p.qps, (*qp).seeking); i >= 0 {
		q := p.qps[i]
		p.qps = append(slices.Delete(p.qps, i, i+1), q)
	}
	switch {
	case p.attempt != nil:
	case p.next < len(p.endpoints):
		p.dial()
	default:
		p.rest()
	}
}

// rest starts the pause before the next round, or gives up.
func (p *path) rest() {
	if p.gone > 0 && p.gone == len(p.endpoints) {
		p.unreachable(p.failure)
	}
	if p.resting || p.attempt != nil || !p.waits() {
		return
	}
	p.resting = true
	p.timer = time.AfterFunc(p.pause, func() {
		p.dev.token.Lock()
		defer p.dev.leave()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.resting {
			p.resting = false
			p.again()
		}
	})
	p.pause = min(2*p.pause, lastPause)
}

// again starts the next round.
func (p *path) again() {
	p.next, p.gone = 0, 0
	switch {
	case !p.waits():
	case p.key.dials:
		p.seek()
	default:
		p.dial()
	}
}

// failed counts an endpoint at which no device listens. A peer listens before it hands
// out its address, until its device closes or its process ends. So there is no use in
// waiting if it listens at no endpoint.
func (p *path) failed(cause error) {
	p.failure = cause
	if errors.Is(cause, unix.ECONNREFUSED) || errors.Is(cause, unix.ENETUNREACH) {
		p.gone++
	}
}

// unreachable gives up for all queue pairs that wait for a connection.
func (p *path) unreachable(cause error) {
	for _, q := range slices.Clone(p.qps) {
		if q.seeking() {
			q.unreachable(cause)
		}
	}
}

// unreachable gives up. No established connection is lost: the peer may live and have
// another queue pair by now.
func (q *qp) unreachable(cause error) {
	if cause == nil {
		cause = errSilent
	}
	cause = fmt.Errorf("tcp: connecting with the peer, for at most %v: %w", q.timeout, cause)
	q.broke(lost(cause), cause)
	q.disconnect()
}

// dialed begins the handshake with the peer once the connection is there.
func (l *link) dialed() error {
	if err := socketError(l.fd); err != nil {
		return err
	}
	p := l.path
	if !p.key.dials {
		return errSilent // the peer listens; its side dials
	}
	if err := l.tune(p.dev.timeout); err != nil {
		return err
	}
	l.watch(unix.EPOLLIN)
	if p.dev.tls != nil {
		return l.secure()
	}
	l.reached()
	return nil
}

// reached opens streams on a connection that the acceptor has taken.
func (l *link) reached() {
	p := l.path
	l.timer.Stop() // from here on, the queue pairs give up
	l.phase = phaseHello
	l.greet(&l.dialer)
	p.attempt, p.links = nil, append(p.links, l)
	next := p.next
	p.next = p.tried // where further connections go, without a pause
	if p.seek(); p.attempt == nil {
		p.next = next
	}
	if len(l.streams) == 0 {
		l.drop()
	}
}
