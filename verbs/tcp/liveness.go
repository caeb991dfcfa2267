//go:build linux

package tcp

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// watchdog checks the connections every quarter of the shortest timeout of any of them.
// TCP alone would repeat unacknowledged data for a quarter of an hour. Its own limit,
// TCP_USER_TIMEOUT, does not tell a vanished host from a stopped process.
type watchdog struct {
	timer *time.Timer
	every time.Duration
}

// watchOver makes the watchdog check connections with this timeout. Precondition: the
// token is held.
func (d *device) watchOver(timeout time.Duration) {
	every := max(timeout/4, time.Millisecond)
	w := &d.watchdog
	switch {
	case w.timer == nil:
		w.every = every
		w.timer = time.AfterFunc(every, d.lookRound)
	case every < w.every:
		w.every = every
		w.timer.Reset(every)
	}
}

// lookRound looks at each connection on which frames flow. The watchdog's timer calls it.
func (d *device) lookRound() {
	d.token.Lock()
	defer d.leave()
	if d.closed {
		return
	}
	now := time.Now()
	for _, l := range d.links {
		if l != nil && l.phase == phaseStream {
			l.look(now)
		}
	}
	d.watchdog.timer.Reset(d.watchdog.every)
}

// look breaks the queue pairs of a connection that has been silent for too long. It resets
// a connection without further ones. Precondition: the token is held.
func (l *link) look(now time.Time) {
	l.lock()
	defer l.unlock()
	info, err := unix.GetsockoptTCPInfo(l.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return
	}
	silent := false
	for _, s := range slices.Backward(l.streams) {
		if q := s.q; s.state == streamLive && q.state != driver.StateErr && l.silence.over(info, now, q.timeout) {
			silent = true
			q.lost(errSilent)
			q.disconnect()
		}
	}
	if silent && len(l.streams) == 0 {
		l.reset()
	}
}

// guard makes the watchdog check the connection with the shortest timeout of its queue
// pairs.
func (l *link) guard() {
	var least time.Duration
	for _, s := range l.streams {
		if s.state == streamLive && (least == 0 || s.q.timeout < least) {
			least = s.q.timeout
		}
	}
	if least > 0 {
		l.tune(least) //nolint:errcheck // the connection works without
		l.dev.watchOver(least)
	}
}

// tune sets the options of the socket for a timeout, unless they are set. So each further stream of a
// connection makes no system call for them.
func (l *link) tune(timeout time.Duration) error {
	if l.tuned == timeout {
		return nil
	}
	l.tuned = 0 // a failure may leave some of the options set
	err := tune(l.fd, timeout)
	if err == nil {
		l.tuned = timeout
	}
	return err
}

// leastSilence is the shortest silence that counts. The kernel acknowledges probes at
// most every half second, and so may leave one without a response.
const leastSilence = 2 * time.Second

// silence is the time since which the peer's host owes an acknowledgement; zero while
// it owes none.
type silence struct{ since time.Time }

// over reports whether the silence has lasted for timeout. A silence counts if the host
// did not acknowledge the last segment, be it a repetition or a window probe. Those
// become ever more rare. The host of a stopped process acknowledges them all.
func (s *silence) over(info *unix.TCPInfo, now time.Time, timeout time.Duration) bool {
	owed := info.Unacked > 0 && info.Last_ack_recv > info.Last_data_sent
	if !owed && info.Probes == 0 {
		s.since = time.Time{}
		return false
	}
	if s.since.IsZero() {
		s.since = now
	}
	heard := now.Add(-time.Duration(info.Last_ack_recv) * time.Millisecond)
	if heard.After(s.since) {
		s.since = heard
	}
	return now.Sub(s.since) >= max(timeout, leastSilence)
}
