package tcp

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// phase is the progress of a connection. The package comment shows the handshake.
type phase uint8

const (
	phaseDial      phase = iota // dialer: connecting
	phaseChallenge              // dialer: hello sent
	phaseWelcome                // dialer: proof sent
	phaseHello                  // acceptor: nothing read yet
	phaseParked                 // acceptor: hello is correct, its queue pair knows no peer yet
	phaseProof                  // acceptor: challenge sent
	phaseStream                 // frames flow
)

// A link is one socket in the device's epoll. The device's token guards it. From
// phaseStream on, mu guards the fields through which frames flow. mu is then also the
// lock of the queue pairs on its streams.
type link struct {
	dev      *device
	q        *qp // the queue pair of the handshake: nil until a correct hello
	fd       int
	slot     int32
	gen      int32
	phase    phase
	outgoing bool // this device dialed: this end makes further queue pairs join

	timer *time.Timer // cuts a handshake that takes too long
	due   time.Time
	hs    handshake
	asked joinRequest // acceptor: the request of the dialer's second queue pair

	silence silence

	mu      sync.Mutex
	streams [maxStreams]stream
	turn    int  // the stream that sends the next frame
	shut    bool // nothing more is sent
	out     outbox
	in      inbox
}

// addLink takes a socket into the epoll. Precondition: the token is held.
func (d *device) addLink(fd int, q *qp, p phase, events uint32) (*link, error) {
	l := &link{dev: d, q: q, fd: fd, phase: p, outgoing: p == phaseDial}
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

// watch changes the events for which the device waits.
func (l *link) watch(events uint32) {
	event := unix.EpollEvent{Events: events, Fd: l.slot, Pad: l.gen}
	unix.EpollCtl(l.dev.epfd, unix.EPOLL_CTL_MOD, l.fd, &event) //nolint:errcheck // the socket is in the set
}

// up reports whether the socket is open. Precondition: the token is held.
func (l *link) up() bool { return l.dev.links[l.slot] == l }

// drop closes the socket. It is idempotent. Precondition: the token is held, and mu in
// phaseStream.
func (l *link) drop() {
	d := l.dev
	if !l.up() {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	d.links[l.slot] = nil
	if l.phase == phaseStream {
		d.flowing--
	}
	if d.hot == l {
		d.hot = nil
	}
	d.freeSlots = append(d.freeSlots, l.slot)
	d.strangers = remove(d.strangers, l)
	l.out.reset()
	l.out.broken = true
	l.in.stop()
	unix.Close(l.fd) //nolint:errcheck // there is no remedy
}

// expire cuts the handshake if it has not reached another phase within timeout.
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
	if !l.up() {
		return
	}
	l.drop()
	q := l.q
	if q == nil {
		return
	}
	q.lock()
	defer q.unlock()
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

// handle handles the epoll's events of the socket. Precondition: the token is held.
func (l *link) handle(events uint32) {
	if l.phase == phaseStream {
		l.serve(events)
		return
	}
	if err := l.advance(); err != nil {
		l.cut(err)
	}
}

// serve moves bytes both ways, then sends frames that may leave now.
func (l *link) serve(events uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.up() {
		return
	}
	if events&unix.EPOLLOUT != 0 {
		l.out.blocked = false
		l.watch(unix.EPOLLIN)
	}
	if events&^unix.EPOLLOUT != 0 {
		if err := l.fillInbox(); err != nil {
			l.lost(err)
			return
		}
		for i := range l.streams {
			if q := l.live(i); q != nil {
				q.retire()
			}
		}
	}
	l.flush()
	if l.out.blocked {
		l.dev.hotLeft = 0 // the epoll reports room in the socket
	}
}

// flush moves frames from the queues to the socket, until the queues are empty or the
// socket is full.
func (l *link) flush() {
	for !l.out.blocked && !l.out.broken {
		l.fill()
		if l.out.empty() {
			break
		}
		switch errno := l.out.write(l.fd); {
		case errno == unix.EAGAIN || errno == 0 && !l.out.empty():
			l.block()
		case errno == unix.EINTR:
		case errno != 0:
			l.out.broken = true // the reader finds out, behind the peer's last frames
			return
		}
	}
	if l.out.empty() && !l.out.broken && !l.shut && !l.needed() {
		l.shut = true
		unix.Shutdown(l.fd, unix.SHUT_WR) //nolint:errcheck // the connection is over either way
	}
}

// fill queues frames that may leave, until the outbox has enough. The queue pairs take
// turns of one round, so that neither waits long.
func (l *link) fill() {
	for idle := 0; idle < maxStreams && l.out.open(); l.turn = (l.turn + 1) % maxStreams {
		idle++
		if q := l.live(l.turn); q != nil && q.round() {
			idle = 0
		}
	}
}

// block waits until the socket can be written.
func (l *link) block() {
	l.out.blocked = true
	l.watch(unix.EPOLLIN | unix.EPOLLOUT)
}
