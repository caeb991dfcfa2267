package tcp

import (
	"crypto/hmac"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

const acceptPause = 100 * time.Millisecond

// accept takes in the connections that wait at the listening socket. If too many have
// not identified themselves, the device cuts the oldest one. So silent strangers cannot
// lock out a peer.
func (d *device) accept() {
	for {
		fd, from, err := unix.Accept4(d.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err == unix.EINTR || err == unix.ECONNABORTED {
			continue
		}
		if exhausted(err) && d.makeRoom() {
			continue
		}
		if err != nil {
			if err != unix.EAGAIN {
				d.pauseAccepting()
			}
			return
		}
		if len(d.strangers) >= maxStrangers {
			d.strangers[0].drop()
		}
		d.accepted(fd, from)
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) //nolint:errcheck // the connection is slower without it
		if l, err := d.addLink(fd, nil, phaseHello, unix.EPOLLIN); err == nil {
			d.strangers = append(d.strangers, l)
			l.expire(handshakeTimeout)
		}
	}
}

// pauseAccepting stops accepting for a while, until the shortage of descriptors or
// memory may be over. The connections stay in the listening socket's queue.
func (d *device) pauseAccepting() {
	event := unix.EpollEvent{Fd: listenerSlot}
	unix.EpollCtl(d.epfd, unix.EPOLL_CTL_MOD, d.listener, &event) //nolint:errcheck // it is in the set
	time.AfterFunc(acceptPause, func() {
		d.token.Lock()
		defer d.token.Unlock()
		if !d.closed {
			event.Events = unix.EPOLLIN
			unix.EpollCtl(d.epfd, unix.EPOLL_CTL_MOD, d.listener, &event) //nolint:errcheck // it is in the set
		}
	})
}

// greeted reads the hello. It cuts a dialer that does not know the secret of the queue
// pair in its hello, and sends nothing.
func (l *link) greeted() error {
	done, err := l.read(helloSize)
	if !done || err != nil {
		return err
	}
	mac, ok := l.hs.parseHello(l.hs.buf[:helloSize])
	if !ok {
		return errProtocol
	}
	q := l.dev.queuePair(l.hs.acceptorQP)
	if q == nil {
		return errUnproven
	}
	q.lock()
	defer q.unlock()
	if !hmac.Equal(mac, l.hs.mac("hello", q.secret)) {
		return errUnproven
	}
	return q.greet(l)
}

// greet goes on with a dialer after a correct hello, or parks it until q knows its
// peer.
func (q *qp) greet(l *link) error {
	switch {
	case q.state == driver.StateErr || q.link != nil:
		return errUnproven
	case q.state == driver.StateReset || q.state == driver.StateInit:
		q.dev.strangers = remove(q.dev.strangers, l)
		l.q, l.phase = q, phaseParked
		l.expire(q.timeout)
		q.park(l)
		return nil
	case q.peer.qp != l.hs.dialerQP:
		return errUnproven
	}
	q.dev.strangers = remove(q.dev.strangers, l)
	l.q, l.phase = q, phaseProof
	l.expire(handshakeTimeout)
	return l.write(l.hs.challenge(q.secret, q.peer.token))
}

// park keeps a dialer that connected too early. If there are many, it cuts the oldest.
func (q *qp) park(l *link) {
	if len(q.parked) == maxParked {
		q.parked[0].unparked(q)
		q.parked = q.parked[1:]
	}
	q.parked = append(q.parked, l)
}

// unpark goes on with the parked dialers.
func (q *qp) unpark() {
	parked := q.parked
	q.parked = nil
	for _, l := range parked {
		switch {
		case l.phase == phaseStream && q.link == nil:
			q.share(&l.mu)
			q.admit(l)
		case l.phase == phaseStream || q.greet(l) != nil:
			l.unparked(q)
		}
	}
}

// unparked ends the wait of a dialer that waited for q in vain. Precondition: token and
// q's lock are held.
func (l *link) unparked(q *qp) {
	if l.phase != phaseStream {
		l.drop()
		return
	}
	if q.mu.Load() != &l.mu {
		l.mu.Lock() // the token is held: see share
		defer l.mu.Unlock()
	}
	l.turnAway()
}

// proven reads the dialer's proof; from here on it is the peer.
func (l *link) proven() error {
	done, err := l.read(macSize)
	if !done || err != nil {
		return err
	}
	q := l.q
	q.lock()
	defer q.unlock()
	if q.link != nil || !q.connecting() || !hmac.Equal(l.hs.buf[:macSize], l.hs.mac("proof", q.secret, q.peer.token)) {
		return errUnproven
	}
	if err := l.write(l.hs.mac("welcome", q.secret, q.peer.token)); err != nil {
		return err
	}
	l.started(q)
	return nil
}
