package tcp

import (
	"time"

	"golang.org/x/sys/unix"
)

// phase is where a connection stands. The picture of the handshake is in the
// package comment.
type phase uint8

const (
	phaseDial      phase = iota // dialer: connecting
	phaseChallenge              // dialer: hello sent
	phaseWelcome                // dialer: proof sent
	phaseHello                  // acceptor: nothing read yet
	phaseParked                 // acceptor: hello is good, its queue pair knows no peer yet
	phaseProof                  // acceptor: challenge sent
	phaseStream                 // frames flow
)

// A link is one socket in the device's epoll. Until phaseStream the device's
// token guards all of it, afterwards its queue pair's lock does.
type link struct {
	dev   *device
	q     *qp // nil until a good hello
	fd    int
	slot  int32
	gen   int32
	phase phase

	timer *time.Timer // cuts a handshake that takes too long
	due   time.Time
	hs    handshake

	silence silence // guarded by the token
}

// addLink takes a socket into the epoll. Called with the token held.
func (d *device) addLink(fd int, q *qp, p phase, events uint32) (*link, error) {
	l := &link{dev: d, q: q, fd: fd, phase: p}
	slot := len(d.links)
	if n := len(d.freeSlots); n > 0 {
		slot = int(d.freeSlots[n-1])
		d.freeSlots = d.freeSlots[:n-1]
	} else {
		d.links = append(d.links, nil)
	}
	d.linkGen++
	l.slot, l.gen = int32(slot), d.linkGen
	event := unix.EpollEvent{Events: events, Fd: l.slot, Pad: l.gen}
	if err := unix.EpollCtl(d.epfd, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		d.freeSlots = append(d.freeSlots, l.slot)
		unix.Close(fd) //nolint:errcheck // the first error counts
		return nil, err
	}
	d.links[slot] = l
	return l, nil
}

// watch changes what the device waits for.
func (l *link) watch(events uint32) {
	event := unix.EpollEvent{Events: events, Fd: l.slot, Pad: l.gen}
	unix.EpollCtl(l.dev.epfd, unix.EPOLL_CTL_MOD, l.fd, &event) //nolint:errcheck // the socket is in the set
}

// drop closes the socket. Called with the token held, and with the lock of its
// queue pair when it is in phaseStream. It is idempotent.
func (l *link) drop() {
	d := l.dev
	if d.links[l.slot] != l {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	d.links[l.slot] = nil
	if d.last == l {
		d.last, d.hot = nil, nil
	}
	d.freeSlots = append(d.freeSlots, l.slot)
	d.strangers = remove(d.strangers, l)
	unix.Close(l.fd) //nolint:errcheck // nothing to be done about it
}

// expire gives the handshake until timeout from now to reach another phase.
func (l *link) expire(timeout time.Duration) {
	l.due = time.Now().Add(timeout)
	if l.timer != nil {
		l.timer.Reset(timeout)
		return
	}
	l.timer = time.AfterFunc(timeout, func() {
		l.dev.token.Lock()
		defer l.dev.token.Unlock()
		if l.phase != phaseStream && !time.Now().Before(l.due) {
			l.cut(errSilent)
		}
	})
}

// cut ends a handshake; the dialer tries again.
func (l *link) cut(cause error) {
	if l.dev.links[l.slot] != l {
		return
	}
	l.drop()
	q := l.q
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.parked = remove(q.parked, l)
	if q.dialing.link == l {
		q.redial(cause)
	}
}

func remove(from []*link, l *link) []*link {
	for i := range from {
		if from[i] == l {
			return append(from[:i], from[i+1:]...)
		}
	}
	return from
}

// handle reacts to what the epoll said about the socket. Token held.
func (l *link) handle(events uint32) {
	if l.phase == phaseStream {
		l.q.serve(l, events)
		return
	}
	if err := l.advance(); err != nil {
		l.cut(err)
	}
}

// serve moves bytes both ways, then does what became possible.
func (q *qp) serve(l *link, events uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.link != l {
		return
	}
	if events&unix.EPOLLOUT != 0 {
		q.out.blocked = false
		l.watch(unix.EPOLLIN)
	}
	if events&^unix.EPOLLOUT != 0 {
		if err := q.fillInbox(l.fd); err != nil {
			q.broke(err)
			q.disconnect()
			return
		}
		q.retire()
	}
	q.flush()
}

// disconnect closes whatever connects q with its peer, after what is queued
// was offered to the socket once. Called with token and mu held.
func (q *qp) disconnect() {
	q.dialing.stop()
	for _, l := range q.parked {
		l.drop()
	}
	q.parked = nil
	if q.link == nil {
		return
	}
	if !q.out.empty() && !q.out.broken {
		q.out.write(q.link.fd)
	}
	q.link.drop()
	q.link = nil
	q.out.reset()
	q.in.reset()
	q.answers = answers{}
}
