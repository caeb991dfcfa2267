package tcp

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// watchdog looks at the connections every quarter of the shortest timeout that
// any of them has. TCP alone would go on repeating unanswered data for a
// quarter of an hour, and its own limit, TCP_USER_TIMEOUT, does not tell a
// vanished host from a stopped process.
type watchdog struct {
	timer *time.Timer
	every time.Duration
}

// watchOver has connections of this timeout watched. Token held.
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

func (d *device) lookRound() {
	d.token.Lock()
	defer d.ring()
	defer d.token.Unlock()
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

// look breaks the queue pairs whose peer has been silent for too long. Token held.
func (l *link) look(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := unix.GetsockoptTCPInfo(l.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return
	}
	for i := range l.lanes {
		if q := l.live(i); q != nil && q.state != driver.StateErr && l.silence.over(info, now, q.timeout) {
			q.lost(errSilent)
			q.disconnect()
		}
	}
}

// guard has the connection watched with the shortest timeout that now holds.
func (l *link) guard() {
	var least time.Duration
	for i := range l.lanes {
		if q := l.live(i); q != nil && (least == 0 || q.timeout < least) {
			least = q.timeout
		}
	}
	if least > 0 {
		tune(l.fd, least) //nolint:errcheck // the connection works without
		l.dev.watchOver(least)
	}
}

// leastSilence is the shortest silence that means anything: the kernel answers
// probes at most every half second, and so may leave one unanswered.
const leastSilence = 2 * time.Second

// silence is since when the peer's host owes an answer and gives none; zero
// while it owes none.
type silence struct{ since time.Time }

// over tells whether the silence has lasted for timeout. What counts is that
// the last thing sent, be it a repetition or a probe of a shut window, was not
// answered: those come ever more rarely, and a host whose process is stopped
// answers them all.
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
