//go:build linux

package tcp

import (
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/atomics"
)

// listenerSlot marks the listening socket among the epoll's events.
const listenerSlot = -1

// server is the goroutine that serves while the program computes. Its switch keeps it
// asleep while the program polls.
//
//	Go's netpoller <- outer epoll <- device's epoll <- sockets
//	                    armed: tells of its readiness
//
// A program that polls in a loop disarms the link between the two epolls. Else each
// message would wake a thread in vain.
type server struct {
	outer   *os.File
	outerFD int
	conn    syscall.RawConn
	armed   atomic.Bool // changed with the token
	polls   uint64      // ever
	seen    uint64      // polls at the last tick
}

// spinning is the number of polls in one tick from which the program counts as polling.
const spinning = 8

// hotPolls is the number of polls of the only connection between two polls of the
// epoll, which finds new connections. A poll of the epoll costs a system call. After a
// tick or a full socket, the next poll polls the epoll.
const hotPolls = 64

// openEpoll makes both epolls of the picture above, and hands the outer one to Go's netpoller.
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
		err = unix.SetNonblock(outer, true) // so that os.NewFile hands it to the netpoller
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
			d.leave()
		}
		return false
	})
}

// poll makes progress for a program that waits. It sends combined frames. Unless
// another goroutine holds the token, it serves the ready sockets.
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
	d.leave()
}

// round serves the sockets that are ready now and reports whether there may be more.
// Precondition: the token is held.
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

// spoke makes l the hot link if it is the only one with a peer. With several peers,
// polls of one link alone find little, and ranks that share cores yield after each.
// With 4 ranks on 2 cores, 8 bytes to both neighbors then take 38 us instead of 29.
func (d *device) spoke(l *link) {
	if d.flowing == 1 {
		d.hot = l
	}
}

// note records an event for which a goroutine may wait. The caller has made the event visible
// before. Between a load of news and the store, another goroutine could take the news of earlier
// events and ring too soon. So note stores without a look. Any event that the caller makes visible
// afterward is so after this one: an origin may have ordered the two.
func (d *device) note() {
	d.news.Store(true)
	atomics.AcquireRelease()
}

// ring rings the bell when there is news, of any goroutine.
func (d *device) ring() {
	if d.news.Load() {
		d.news.Store(false)
		d.bell.Ring()
	}
}

// polled counts a poll. After many polls with no goroutine asleep, the program spins
// and does not need the server. A goroutine about to sleep needs it.
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

// arm adds the inner epoll to the outer one or takes it out. A change of its events
// would not suffice: the kernel reports no readiness of an entry that its list still
// holds as ready.
func (s *server) arm(inner int, on bool) {
	s.armed.Store(on)
	op := unix.EPOLL_CTL_DEL
	if on {
		op = unix.EPOLL_CTL_ADD
	}
	unix.EpollCtl(s.outerFD, op, inner, &unix.EpollEvent{Events: unix.EPOLLIN}) //nolint:errcheck // both are open
}
