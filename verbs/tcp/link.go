//go:build linux

package tcp

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/mutant"
)

// phase is the progress of a connection. The package comment shows the handshake.
type phase uint8

const (
	phaseDial    phase = iota // dialer: connecting
	phaseTLS                  // the handshake of TLS
	phaseHello                // the peer's HELLO is to come
	phaseOpen                 // no stream has carried frames yet
	phaseStream               // frames flow
	phaseClosing              // all streams have ended; queued frames still leave
)

// A link is one socket in the device's epoll. The device's token guards it. From the
// first stream on, the lock of its path guards the fields through which frames flow.
type link struct {
	dev      *device
	path     *path // nil at an acceptor that does not know the peer yet
	fd       int
	slot     int32
	gen      int32
	phase    phase
	outgoing bool // this device dialed: this end opens the streams

	timer *time.Timer // cuts a handshake or a close that takes too long
	due   time.Time

	tls     *secured // nil without TLS
	binding []byte   // of the streams' proofs to the TLS connection

	dialer, acceptor nonce

	silence silence
	tuned   time.Duration // the timeout for which the socket's options are set; 0: they are not

	streams []*stream // that have not ended, by number
	next    uint32    // number of the next stream
	turn    int       // the stream that sends the next frame
	shut    bool      // the peer learns that nothing more comes
	out     outbox
	in      inbox
}

// addLink takes a socket into the epoll. Precondition: the token is held.
func (d *device) addLink(fd int, p *path, at phase, events uint32) (*link, error) {
	l := &link{dev: d, path: p, fd: fd, phase: at, outgoing: at == phaseDial}
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

// lock takes the lock of the path, if there is one. Precondition: the token is held.
func (l *link) lock() {
	if l.path != nil {
		l.path.mu.Lock()
	}
}

// unlock releases the lock of the path, which l may have got since.
func (l *link) unlock() {
	if l.path != nil {
		l.path.mu.Unlock()
	}
}

// watch changes the events for which the device waits.
func (l *link) watch(events uint32) {
	event := unix.EpollEvent{Events: events, Fd: l.slot, Pad: l.gen}
	unix.EpollCtl(l.dev.epfd, unix.EPOLL_CTL_MOD, l.fd, &event) //nolint:errcheck // the socket is in the set
}

// up reports whether the socket is open. Precondition: the token is held.
func (l *link) up() bool { return l.dev.links[l.slot] == l }

// drop closes the socket. It is idempotent. Precondition: token and lock are held.
func (l *link) drop() {
	d := l.dev
	if !l.up() {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.tls != nil {
		l.tls.stop()
	}
	l.detach()
	d.links[l.slot] = nil
	d.freeSlots = append(d.freeSlots, l.slot)
	d.strangers = remove(d.strangers, l)
	d.early = remove(d.early, l)
	l.out.reset()
	l.out.broken = true
	l.in.stop()
	unix.Close(l.fd) //nolint:errcheck // there is no remedy
	if l.path != nil {
		l.path.end()
	}
}

// reset closes the socket and has the kernel drop its bytes and tell the peer. After a
// plain close the kernel would repeat those bytes for minutes. If the link has failed
// only toward this host, the peer would take them for signs of life. Precondition: token
// and lock are held.
func (l *link) reset() {
	if l.up() {
		unix.SetsockoptLinger(l.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) //nolint:errcheck // the peer finds out later
		l.drop()
	}
}

// detach ends the use of l for frames and for further streams.
func (l *link) detach() {
	if l.phase == phaseStream {
		l.dev.flowing--
	}
	if l.dev.hot == l {
		l.dev.hot = nil
	}
	if p := l.path; p != nil {
		p.links = remove(p.links, l)
		if p.attempt == l {
			p.attempt = nil
		}
	}
}

// close ends a connection without streams, once all queued bytes have left and the peer
// has closed its end. A close before that could cost the peer its last frames.
// Precondition: token and lock are held.
func (l *link) close() {
	if l.phase != phaseStream {
		l.drop()
		return
	}
	l.detach()
	l.phase = phaseClosing
	l.in.stop()
	if l.tls != nil {
		l.tls.ending = true
	}
	l.expire(handshakeTimeout)
	l.flush()
}

// expire cuts a connection on which no frames flow after timeout.
func (l *link) expire(timeout time.Duration) {
	l.due = time.Now().Add(timeout)
	if l.timer != nil {
		l.timer.Reset(timeout)
		return
	}
	l.timer = time.AfterFunc(timeout, func() {
		l.dev.token.Lock()
		defer l.dev.leave()
		l.lock()
		defer l.unlock()
		if l.up() && l.phase != phaseStream && !time.Now().Before(l.due) {
			l.lost(errSilent)
		}
	})
}

func remove(from []*link, l *link) []*link {
	for i := range from {
		if from[i] == l {
			return append(from[:i], from[i+1:]...)
		}
	}
	return from
}

// handle handles the epoll's events of the socket. It moves bytes both ways, then sends
// frames that may leave now. Precondition: the token is held.
func (l *link) handle(events uint32) {
	l.lock()
	defer l.unlock()
	var err error
	switch {
	case !l.up():
		return
	case l.phase == phaseDial:
		err = l.dialed()
	default:
		err = l.serve(events)
	}
	if err != nil {
		l.lost(err)
	}
}

// serve moves bytes both ways, as the events of the socket allow. An error ends the connection.
// Precondition: token and lock are held.
func (l *link) serve(events uint32) error {
	mutant.Hesitate(mutant.Operation)
	if events&unix.EPOLLOUT != 0 {
		l.out.blocked = false
		l.watch(unix.EPOLLIN)
	}
	if events&^unix.EPOLLOUT != 0 {
		if err := l.fillInbox(); err != nil {
			return err
		}
		for _, s := range l.streams {
			if s.state == streamLive {
				s.q.retire()
			}
		}
	}
	l.flush()
	if l.out.blocked {
		l.dev.hotLeft = 0 // the epoll reports room in the socket
	}
	return nil
}

// flush moves frames from the queues to the socket, until the queues are empty or the
// socket is full.
func (l *link) flush() {
	for !l.out.blocked && !l.out.broken {
		l.fill()
		if l.idle() {
			break
		}
		mutant.Hesitate(mutant.Operation)
		switch errno := l.write(); {
		case errno == unix.EAGAIN || errno == 0 && !l.idle():
			l.block()
		case errno == unix.EINTR:
		case errno != 0:
			l.out.broken = true // the reader finds out, behind the peer's last frames
			return
		}
	}
	if l.phase == phaseClosing && l.idle() && !l.shut {
		l.shut = true
		unix.Shutdown(l.fd, unix.SHUT_WR) //nolint:errcheck // the connection is over either way
	}
}

// idle reports whether the socket has taken all queued bytes.
func (l *link) idle() bool { return l.out.empty() && (l.tls == nil || l.tls.idle()) }

// write sends queued bytes, as many as the socket takes or as one call sends.
func (l *link) write() unix.Errno {
	if l.tls != nil {
		return l.tls.write(l.fd, &l.out)
	}
	return l.out.write(l.fd)
}

// fill queues frames that may leave, until the outbox has enough. The queue pairs take
// turns of one round, so that none of them waits long.
func (l *link) fill() {
	for idle := 0; idle < len(l.streams) && l.out.open(); l.turn++ {
		idle++
		if l.turn >= len(l.streams) {
			l.turn = 0
		}
		if s := l.streams[l.turn]; s.state == streamLive && s.q.round() {
			idle = 0
		}
	}
}

// block waits until the socket can be written.
func (l *link) block() {
	l.out.blocked = true
	l.watch(unix.EPOLLIN | unix.EPOLLOUT)
}
