package tcp

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"errors"
	"fmt"
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

// dialer is the state of a queue pair that is not connected yet. The side that does not
// dial uses it as well, for probes: they find out whether the peer's device still
// listens.
type dialer struct {
	link   *link // the attempt in progress, or nil
	joins  *link // the connection that it asked to share, or nil
	leader *qp   // the queue pair with the connection that it waits to share, or nil
	probe  bool
	next   int // endpoint to try
	gone   int // endpoints of this round at which no device listens
	pause  time.Duration
	until  time.Time   // give up
	timer  *time.Timer // the next round, or giving up
	spare  int         // a descriptor kept for the connection, so that a shortage shows at once; 0: none
}

// stopDialing ends q's attempts to connect. Precondition: token and q's lock are held.
func (q *qp) stopDialing() {
	q.leadOn()
	q.unfollow()
	d := q.dialing
	q.dialing = dialer{}
	d.giveSpare()
	if d.timer != nil {
		d.timer.Stop()
	}
	if d.link != nil {
		d.link.drop()
	}
	if d.joins != nil {
		d.joins.unparked(q)
	}
}

// connecting reports whether q knows its peer but is not connected yet.
func (q *qp) connecting() bool {
	return q.link == nil && (q.state == driver.StateRTR || q.state == driver.StateRTS || q.state == driver.StateSQD)
}

// connect starts to connect q with its peer. The device with the lower number dials. So
// all queue pairs of two devices look at the same one for a connection to share. On one
// device, the queue pair with the lower secret dials. Precondition: token and q's lock
// are held.
func (q *qp) connect(peer []byte) error {
	to, err := decodeAddress(peer)
	if err != nil {
		return err
	}
	spare, err := q.dev.keepSpare()
	if err != nil {
		return fmt.Errorf("tcp: connecting queue pair %d: %w", q.num, err)
	}
	q.peer, q.state = to, driver.StateRTR
	q.dialing = dialer{pause: firstPause, until: time.Now().Add(q.timeout), spare: spare}
	order := cmp.Or(cmp.Compare(q.dev.id, to.device), bytes.Compare(q.secret[:], to.token[:]))
	switch order {
	case 0:
		return q.connectSelf()
	case -1:
		q.seek()
	default:
		q.dialing.probe, q.dialing.pause = true, firstProbe
		q.rest(nil)
		q.unpark()
	}
	return nil
}

// afterwards runs f with token and lock, unless q is connected by then.
func (q *qp) afterwards(pause time.Duration, f func()) *time.Timer {
	secret := q.secret
	return time.AfterFunc(pause, func() {
		q.dev.token.Lock()
		defer q.dev.ring()
		defer q.dev.token.Unlock()
		q.lock()
		defer q.unlock()
		if q.connecting() && q.secret == secret {
			f()
		}
	})
}

func (q *qp) connectSelf() error {
	q.dialing.giveSpare()
	fd, err := dialSelf()
	if err == nil {
		var l *link
		if l, err = q.dev.addLink(fd, q, phaseStream, unix.EPOLLIN); err == nil {
			l.started(q)
			return nil
		}
	}
	q.state = driver.StateInit
	return fmt.Errorf("tcp: connecting queue pair %d with itself: %w", q.num, memory.Descriptors(err))
}

// dial tries the peer's endpoints from the next one on. It skips an endpoint that fails
// at once, and pauses after the last one.
func (q *qp) dial() {
	var err error
	for q.dialing.next < len(q.peer.endpoints) {
		to := q.peer.endpoints[q.dialing.next]
		q.dialing.next++
		congestion := ""
		if q.dev.within(to.Addr()) {
			congestion = unpaced
		}
		var fd int
		if fd, err = dial(to, congestion); exhausted(err) && q.dialing.giveSpare() {
			fd, err = dial(to, congestion)
		}
		if exhausted(err) {
			q.unreachable(memory.Descriptors(err))
			return
		}
		if err != nil {
			q.dialing.failed(err)
			continue
		}
		if q.dialing.link, err = q.dev.addLink(fd, q, phaseDial, unix.EPOLLOUT); err == nil {
			q.dialing.link.expire(handshakeTimeout)
			return
		}
	}
	q.rest(err)
}

// redial follows a failed attempt.
func (q *qp) redial(cause error) {
	q.dialing.link = nil
	if !q.connecting() {
		return
	}
	q.dialing.failed(cause)
	if q.dialing.next < len(q.peer.endpoints) {
		q.dial()
		return
	}
	q.rest(cause)
}

// rest starts the timer of the next round, or gives up.
func (q *qp) rest(cause error) {
	if time.Now().After(q.dialing.until) || q.dialing.gone == len(q.peer.endpoints) {
		q.unreachable(cause)
		return
	}
	q.dialing.next, q.dialing.gone = 0, 0
	q.dialing.timer = q.afterwards(q.dialing.pause, q.dial)
	q.dialing.pause = min(2*q.dialing.pause, lastPause)
}

// failed counts an endpoint at which no device listens. A peer listens before it hands
// out its address, until its device closes or its process ends. So there is no use in
// waiting if it listens at no endpoint.
func (d *dialer) failed(cause error) {
	if errors.Is(cause, unix.ECONNREFUSED) || errors.Is(cause, unix.ENETUNREACH) {
		d.gone++
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

// dialed sends the hello once the connection is established.
func (l *link) dialed() error {
	if err := socketError(l.fd); err != nil {
		return err
	}
	if l.q.dialing.probe {
		return errSilent // the peer listens; its side dials
	}
	if err := tune(l.fd, l.q.timeout); err != nil {
		return err
	}
	l.phase = phaseChallenge
	l.watch(unix.EPOLLIN)
	// The peer may learn of this queue pair late: it parks the connection until then.
	l.expire(max(handshakeTimeout, time.Until(l.q.dialing.until)))
	return l.write(l.hs.hello(&l.q.peer, l.q.num))
}

// challenged checks that the acceptor knows both secrets, and sends the dialer's proof.
func (l *link) challenged() error {
	done, err := l.read(challengeSize)
	if !done || err != nil {
		return err
	}
	copy(l.hs.acceptor[:], l.hs.buf[:nonceSize])
	q := l.q
	if !hmac.Equal(l.hs.buf[nonceSize:challengeSize], l.hs.mac("challenge", q.peer.token, q.secret)) {
		return errUnproven
	}
	l.phase = phaseWelcome
	l.expire(handshakeTimeout)
	return l.write(l.hs.mac("proof", q.peer.token, q.secret))
}

// welcomed waits until the acceptor has chosen this connection.
func (l *link) welcomed() error {
	done, err := l.read(macSize)
	if !done || err != nil {
		return err
	}
	q := l.q
	q.lock()
	defer q.unlock()
	if !q.connecting() || !hmac.Equal(l.hs.buf[:macSize], l.hs.mac("welcome", q.peer.token, q.secret)) {
		return errUnproven
	}
	l.started(q)
	return nil
}
