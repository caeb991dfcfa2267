//go:build linux

package tcp

import (
	"time"

	"golang.org/x/sys/unix"
)

const acceptPause = 100 * time.Millisecond

// accept takes in the connections that wait at the listening socket. If too many have
// not identified themselves, or descriptors lack, the device cuts the oldest stranger. So
// silent strangers cannot lock out a peer.
func (d *device) accept() {
	for {
		fd, from, err := unix.Accept4(d.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err == unix.EINTR || err == unix.ECONNABORTED {
			continue
		}
		if exhausted(err) {
			if !d.hasCaller() {
				return // accept takes a descriptor before it looks for a connection
			}
			if d.makeRoom() || d.heard(acceptPause) && d.cutStranger() {
				continue
			}
		}
		if err != nil {
			if err != unix.EAGAIN {
				d.pauseAccepting()
			}
			return
		}
		if len(d.strangers) >= maxStrangers {
			d.cutStranger()
		}
		d.accepted(fd, from)
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) //nolint:errcheck // the connection is slower without it
		if l, err := d.addLink(fd, nil, phaseHello, unix.EPOLLIN); err == nil {
			d.strangers = append(d.strangers, l)
			l.expire(handshakeTimeout)
			if d.tls != nil {
				l.secure() //nolint:errcheck // nil at an acceptor
			}
		}
	}
}

// hasCaller reports whether a connection waits to be accepted.
func (d *device) hasCaller() bool {
	waiting := []unix.PollFd{{Fd: int32(d.listener), Events: unix.POLLIN}}
	n, err := unix.Poll(waiting, 0)
	return n > 0 && err == nil
}

// heard reports whether the oldest connection has had a time to identify itself. A peer
// whose connection is cut sooner dials again, and two such peers would take turns.
func (d *device) heard(pause time.Duration) bool {
	return len(d.strangers) > 0 && time.Until(d.strangers[0].due) <= handshakeTimeout-pause
}

// cutStranger closes the oldest connection that has not identified itself, and reports
// whether there was one. Precondition: the token is held.
func (d *device) cutStranger() bool {
	if len(d.strangers) == 0 {
		return false
	}
	d.strangers[0].drop()
	return true
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
