package tcp

import (
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// listenerSlot marks the listening socket among the epoll's events.
const listenerSlot = -1

// server is the goroutine that serves while the program computes, and how it
// is kept quiet while the program polls.
//
//	Go's netpoller <- outer epoll <- device's epoll <- sockets
//	                    armed: tells of its readiness
//
// A program that polls in a loop disarms the link between the two, or each
// message would wake a thread that finds nothing left to do.
type server struct {
	outer   *os.File
	outerFD int
	conn    syscall.RawConn
	armed   atomic.Bool // changed with the token
	polls   uint64      // ever
	seen    uint64      // polls at the last tick
}

// spinning is how many polls within one tick make a program that polls.
const spinning = 8

// hotPolls is how many polls look at the one connection alone while there is no other,
// before the epoll is asked again, which costs a system call: for who else connects. A
// tick, and a full socket, have it asked at the next poll.
const hotPolls = 64

func (d *device) openEpoll() error {
	inner, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	outer, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		unix.Close(inner) //nolint:errcheck // the first error counts
		return err
	}
	d.epfd, d.server.outerFD = inner, outer
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: listenerSlot}
	err = unix.EpollCtl(inner, unix.EPOLL_CTL_ADD, d.listener, &event)
	if err == nil {
		err = unix.EpollCtl(outer, unix.EPOLL_CTL_ADD, inner, &unix.EpollEvent{Events: unix.EPOLLIN})
	}
	if err == nil {
		err = unix.SetNonblock(outer, true) // has os.NewFile hand it to the netpoller
	}
	if err == nil {
		d.server.armed.Store(true)
		d.server.outer = os.NewFile(uintptr(outer), "epoll of provider tcp")
		d.server.conn, err = d.server.outer.SyscallConn()
	}
	if err != nil {
		unix.Close(inner) //nolint:errcheck // the first error counts
		unix.Close(outer) //nolint:errcheck // the first error counts
	}
	return err
}

// run serves until the device is closed.
func (d *device) run() {
	d.server.conn.Read(func(uintptr) bool { //nolint:errcheck // fails when the device is closed
		for more := true; more; {
			d.token.Lock()
			more = d.round()
			d.token.Unlock()
			d.ring()
		}
		return false
	})
}

// poll makes progress on behalf of a program that waits: combined frames
// leave, and unless someone is at it already, ready sockets are served.
func (d *device) poll() {
	if d.dirty.Load() {
		d.flushWaiting()
	}
	if !d.token.TryLock() {
		return
	}
	d.polled()
	if d.hot == nil || d.hotLeft == 0 {
		d.hotLeft = hotPolls
		d.round()
	} else {
		d.hotLeft--
		d.hot.handle(unix.EPOLLIN)
	}
	d.token.Unlock()
	d.ring()
}

// round serves the sockets that are ready now and tells whether there may be
// more. Called with the token held.
func (d *device) round() bool {
	if d.closed {
		return false
	}
	n := epollPoll(d.epfd, d.events[:])
	for i := range d.events[:n] {
		e := &d.events[i]
		if e.Fd == listenerSlot {
			d.accept()
			continue
		}
		if l := d.links[e.Fd]; l != nil && l.gen == e.Pad {
			if l.phase == phaseStream {
				d.spoke(l)
			}
			l.handle(e.Events)
		}
	}
	return n > 0
}

// spoke notes whose turn it was. Where there are several peers, looks at one of them
// alone are in vain, and those who share cores make way for others after each (4 ranks
// on 2 cores, 8 bytes to both neighbours: 38 us, without 29).
func (d *device) spoke(l *link) {
	if d.streams == 1 {
		d.hot = l
	}
}

// note remembers that someone may be waiting for what just happened.
func (d *device) note() {
	if !d.news.Load() {
		d.news.Store(true)
	}
}

// ring rings the bell when there is news.
func (d *device) ring() {
	if d.news.Load() {
		d.news.Store(false)
		d.bell.Ring()
	}
}

// polled counts a poll. Many of them, and nobody asleep, mean that the program
// spins: the goroutine is not needed. Someone about to sleep needs it.
func (d *device) polled() {
	s := &d.server
	s.polls++
	if s.armed.Load() {
		if s.polls-s.seen >= spinning && !d.bell.Waiting() {
			s.arm(d.epfd, false)
			d.ticker.need()
		}
	} else if d.bell.Waiting() {
		s.arm(d.epfd, true)
	}
}

// arm adds the inner epoll to the outer one or takes it out. A change of its
// events would not do: the kernel tells nobody when an entry becomes ready that
// its list still holds as ready from before.
func (s *server) arm(inner int, on bool) {
	s.armed.Store(on)
	op := unix.EPOLL_CTL_DEL
	if on {
		op = unix.EPOLL_CTL_ADD
	}
	unix.EpollCtl(s.outerFD, op, inner, &unix.EpollEvent{Events: unix.EPOLLIN}) //nolint:errcheck // both are open
}
